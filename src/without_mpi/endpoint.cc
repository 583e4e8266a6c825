#include "without_mpi/endpoint.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "os/clock.hpp"
#include "ropewalk/error.hpp"
#include "threads/thread.hpp"
#include "without_mpi/interfaces.hpp"
#include "without_mpi/questions.hpp"

namespace ropewalk::without_mpi {
namespace {

// A connection is made by the other side's kernel, whatever its process does.
constexpr std::int64_t connect_ns = 60 * os::second_ns;
// Connections of strangers are closed after this time. At so many, others wait in the kernel.
constexpr std::int64_t greeting_ns = 10 * os::second_ns;
constexpr std::size_t most_unknown = 1024;
constexpr std::int64_t between_looks_ns = os::second_ns / 1000;  // at those

}  // namespace

// A thread that takes connections while this rank asks the others, or waits for them.
class Endpoint::Answering {
 public:
  explicit Answering(Endpoint& endpoint)
      : stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_({.name = "rw-answers",
                 .owner = "process group: the thread that answers other nodes",
                 .remedy = "make fewer groups at a time"},
                [this, &endpoint] { run(endpoint); }) {}
  ~Answering() {
    stopped_.store(true, std::memory_order_relaxed);
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

 private:
  void run(Endpoint& endpoint) noexcept {
    constexpr int look_ms = 20;  // without an eventfd, too, the end is seen after this time
    while (!stopped_.load(std::memory_order_relaxed)) {
      std::array<pollfd, 2> sockets{pollfd{endpoint.listener().get(), POLLIN, 0},
                                    pollfd{stop_.get(), POLLIN, 0}};
      poll(sockets.data(), sockets.size(), endpoint.greets() ? 1 : look_ms);
      try {
        endpoint.accept();
      } catch (...) {  // no descriptor is left: who asks gets no answer, and says so
        std::this_thread::sleep_for(std::chrono::milliseconds(look_ms));
      }
    }
  }

  std::atomic<bool> stopped_{false};
  os::Descriptor stop_;
  threads::Thread thread_;
};

namespace {

// Connections take descriptors, of which a process may have as many as its hard limit says.
void allow_all_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Endpoint::Endpoint(int rank) : rank_(rank) {
  const std::vector<os::Address> addresses = addresses_to_offer();
  allow_all_descriptors();
  std::uint16_t port = 0;
  listener_ = Socket(os::listen_on_any_port(port));
  if (!listener_) throw os::system_error("process group: no network: socket", errno);
  own_ = node::own_contact(port);
  own_.addresses = 0;
  for (const os::Address& address : addresses) {
    if (own_.addresses < node::Contact::most_addresses) {
      own_.address[own_.addresses++] = address;
    }
  }
  answering_ = std::make_unique<Answering>(*this);
}

Endpoint::~Endpoint() { stop_answering(); }

os::Address Endpoint::route_to(std::size_t rank) const {
  const node::Contact& wanted = contacts_[rank];
  node::MonitoredProcess process;
  process.contact = wanted;
  std::string failures;
  const auto found = best_address(process.candidates(own_), wanted, rank_, failures);
  if (found) return *found;
  throw Error(ErrorCode::system,
              "process group: rank " + std::to_string(rank) + " on node " + wanted.host_name +
                  " cannot be reached on TCP port " + std::to_string(wanted.port) + " (" +
                  (failures.empty() ? "it has no address that this node does not have" : failures) +
                  "); open the firewall between the nodes, or name the interfaces of their "
                  "network with ROPEWALK_INTERFACE");
}

// Ranks of one host have the same addresses, so that one of them is asked for all.
void Endpoint::find_routes(std::span<const node::Contact> contacts) {
  contacts_.assign(contacts.begin(), contacts.end());
  routes_.assign(contacts.size(), os::loopback_address);
  std::map<std::uint64_t, os::Address> by_host;
  for (std::size_t rank = 0; rank < contacts.size(); ++rank) {
    if (static_cast<int>(rank) == rank_) continue;
    const auto [known, added] = by_host.try_emplace(contacts[rank].host);
    if (added) known->second = route_to(rank);
    routes_[rank] = known->second;
  }
}

void Endpoint::stop_answering() noexcept { answering_.reset(); }

Socket Endpoint::connect(int rank, const std::string& communicator) const {
  if (communicator.size() > Greeting::most_name_bytes) {
    throw Error(ErrorCode::unsupported,
                "communicator: split from others too many times in a row, without an MPI");
  }
  const auto at = static_cast<std::size_t>(rank);
  const std::int64_t until = os::steady_ns() + connect_ns;
  Socket made(os::start_connection(routes_[at], contacts_[at].port));
  if (!made) throw os::system_error("connection to " + described(rank), errno);
  pollfd socket{made.get().get(), POLLOUT, 0};
  while (!wait_for(std::span(&socket, 1), until)) {
    if (os::steady_ns() < until) continue;
    throw os::system_error("connection to " + described(rank), ETIMEDOUT);
  }
  const int error = os::connection_error(made.get());
  if (error != 0) throw os::system_error("connection to " + described(rank), error);
  const Greeting greeting{.wanted = contacts_[at].id,
                          .source = rank_,
                          .name_bytes = static_cast<std::uint32_t>(communicator.size())};
  if (!send_all(made.get(), bytes_of(greeting, communicator))) {
    throw os::system_error("connection to " + described(rank), ECONNRESET);
  }
  return made;
}

std::string Endpoint::described(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  const node::Contact& contact = contacts_[at];
  return "rank " + std::to_string(rank) + " on node " + contact.host_name + " (" +
         os::text(routes_[at]) + ", process " + std::to_string(contact.process) + ")";
}

// ---- connections that come

void Endpoint::accept() {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = os::steady_ns();
  bool came = false;
  while (unknown_.size() < most_unknown) {
    Socket next(os::accept_next(listener()));
    if (!next) {
      const bool none =
          errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED;
      if (!none) throw os::system_error("connection from another rank: accept", errno);
      break;
    }
    os::send_without_delay(next.get());
    unknown_.push_back({std::move(next), now, {}});
    came = true;
  }
  if (came || now - looked_ns_ >= between_looks_ns) look_at_unknown(now);
}

void Endpoint::look_at_unknown(std::int64_t now) {
  looked_ns_ = now;
  std::erase_if(unknown_, [&](Unknown& one) {
    return read_greeting(one) || now - one.since_ns > greeting_ns;
  });
  greeting_.store(unknown_.size(), std::memory_order_relaxed);
}

// Reads no more than the greeting, because messages follow. Returns true when nothing is left to
// read.
bool Endpoint::read_greeting(Unknown& one) {
  for (;;) {
    Greeting greeting;
    std::size_t wanted = sizeof greeting;
    if (one.bytes.size() >= wanted) {
      std::memcpy(&greeting, one.bytes.data(), sizeof greeting);
      const bool ours = greeting.magic == Greeting{}.magic && greeting.wanted == own_.id &&
                        greeting.name_bytes <= Greeting::most_name_bytes;
      if (!ours) return true;
      wanted += greeting.name_bytes;
      if (one.bytes.size() == wanted) return admit(one, greeting), true;
    }
    const std::size_t had = one.bytes.size();
    one.bytes.resize(wanted);
    const iovec place{one.bytes.data() + had, wanted - had};
    const os::Moved moved = os::receive_some(one.socket.get(), std::span(&place, 1));
    one.bytes.resize(had + moved.bytes);
    if (moved.ended) return true;
    if (moved.bytes == 0) return false;
  }
}

void Endpoint::admit(Unknown& one, const Greeting& greeting) {
  if (greeting.kind == Greeting::question) {
    send_all(one.socket.get(), {std::byte{answer_yes}});
    return;
  }
  const auto* bytes = reinterpret_cast<const char*>(one.bytes.data() + sizeof greeting);
  std::string name(bytes, greeting.name_bytes);
  if (greeting.kind != Greeting::messages || refused_.contains(name)) return one.socket.close();
  greeted_.push_back(
      {std::move(name), Arrival{.source = greeting.source, .socket = std::move(one.socket)}});
  arrivals_.fetch_add(1, std::memory_order_release);
}

std::vector<Arrival> Endpoint::take(const std::string& communicator) {
  std::vector<Arrival> out;
  const std::lock_guard lock(mutex_);
  std::erase_if(greeted_, [&](Greeted& one) {
    if (one.communicator != communicator) return false;
    out.push_back(std::move(one.arrival));
    return true;
  });
  return out;
}

void Endpoint::refuse(const std::string& communicator) {
  const std::lock_guard lock(mutex_);
  refused_.insert(communicator);
  std::erase_if(greeted_, [&](const Greeted& one) { return one.communicator == communicator; });
}

}  // namespace ropewalk::without_mpi
