#include "without_mpi/endpoint.hpp"

#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "os/clock.hpp"
#include "ropewalk/error.hpp"
#include "threads/thread.hpp"
#include "without_mpi/interfaces.hpp"

namespace ropewalk::without_mpi {
namespace {

// A wanted rank answers at once, since it asks at the same time; a firewall that drops never does.
constexpr std::int64_t answer_ns = 3 * os::second_ns;
// Connections of strangers are closed after this time, and beyond this number.
constexpr std::int64_t greeting_ns = 10 * os::second_ns;
constexpr std::size_t most_unknown = 1024;
constexpr int look_ms = 20;  // between two looks of the thread that answers
constexpr char yes = 'y';

bool wait_for(const os::Descriptor& socket, short events, std::int64_t until_ns) {
  for (;;) {
    const std::int64_t left_ns = until_ns - os::steady_ns();
    if (left_ns <= 0) return false;
    pollfd one{socket.get(), events, 0};
    const int found = poll(&one, 1, static_cast<int>(left_ns / 1'000'000) + 1);
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
  }
}

std::vector<std::byte> bytes_of(const Greeting& greeting, const std::string& name) {
  std::vector<std::byte> bytes(sizeof greeting + name.size());
  std::memcpy(bytes.data(), &greeting, sizeof greeting);
  std::memcpy(bytes.data() + sizeof greeting, name.data(), name.size());
  return bytes;
}

bool send_all(const os::Descriptor& socket, const std::vector<std::byte>& bytes) {
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return os::send_some(socket, std::span(&piece, 1)).bytes == bytes.size();  // it fits the buffer
}

// Asks whoever is at an address whether it is the wanted process. Returns an empty text where it
// is, else why not.
std::string ask(const os::Address& address, const node::Contact& wanted, int own_rank) {
  const std::int64_t until = os::steady_ns() + answer_ns;
  const Socket socket(os::start_connection(address, wanted.port));
  if (!socket) return os::error_text(errno);
  if (!wait_for(socket.get(), POLLOUT, until)) return "no answer";
  if (const int error = os::connection_error(socket.get()); error != 0) {
    return os::error_text(error);
  }
  Greeting question{.wanted = wanted.id, .kind = Greeting::question, .source = own_rank};
  if (!send_all(socket.get(), bytes_of(question, ""))) return "cannot be sent to";
  char answer = 0;
  if (!wait_for(socket.get(), POLLIN, until)) return "no answer";
  const iovec place{&answer, 1};
  os::receive_some(socket.get(), std::span(&place, 1));
  return answer == yes ? "" : "another process listens there";
}

}  // namespace

// A thread that takes connections while this rank asks the others, or waits for them.
class Endpoint::Answering {
 public:
  explicit Answering(Endpoint& endpoint)
      : thread_({.name = "rw-answers",
                 .owner = "process group: the thread that answers other nodes",
                 .remedy = "make fewer groups at a time"},
                [this, &endpoint] {
                  while (!stopped_.load(std::memory_order_relaxed)) {
                    pollfd one{endpoint.listener().get(), POLLIN, 0};
                    poll(&one, 1, endpoint.greets() ? 1 : look_ms);
                    endpoint.accept();
                  }
                }) {}
  ~Answering() {
    stopped_.store(true, std::memory_order_relaxed);
    thread_.join();
  }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

 private:
  std::atomic<bool> stopped_{false};
  threads::Thread thread_;
};

Endpoint::Endpoint(int rank) : rank_(rank) {
  const std::vector<os::Address> addresses = addresses_to_offer();
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
}

os::Address Endpoint::route_to(std::size_t rank, std::span<const node::Contact> contacts) const {
  const node::Contact& wanted = contacts[rank];
  std::string failures;
  node::MonitoredProcess process;
  process.contact = wanted;
  for (const os::Address& address : process.candidates(own_)) {
    const std::string failure = ask(address, wanted, rank_);
    if (failure.empty()) return address;
    failures += (failures.empty() ? "" : "; ") + os::text(address) + ": " + failure;
  }
  throw Error(ErrorCode::system,
              "process group: rank " + std::to_string(rank) + " on node " + wanted.host_name +
                  " cannot be reached on TCP port " + std::to_string(wanted.port) + " (" +
                  (failures.empty() ? "it has no address" : failures) +
                  "); open the firewall between the nodes, or name the interfaces of their "
                  "network with ROPEWALK_INTERFACE");
}

// Ranks of one host have the same addresses, so that one of them is asked for all.
void Endpoint::find_routes(std::span<const node::Contact> contacts) {
  answering_ = std::make_shared<Answering>(*this);
  routes_.assign(contacts.size(), os::loopback_address);
  contacts_.assign(contacts.begin(), contacts.end());
  for (std::size_t rank = 0; rank < contacts.size(); ++rank) {
    const auto same_host = [&](const node::Contact& one) {
      return one.host == contacts[rank].host;
    };
    const auto asked = std::ranges::find_if(contacts.first(rank), same_host) - contacts.begin();
    const bool known = static_cast<std::size_t>(asked) < rank;
    if (contacts[rank].host == own_.host) continue;
    routes_[rank] = known ? routes_[static_cast<std::size_t>(asked)] : route_to(rank, contacts);
  }
}

void Endpoint::stop_answering() noexcept { answering_.reset(); }

Socket Endpoint::connect(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  Socket made(os::start_connection(routes_[at], contacts_[at].port));
  if (!made) throw os::system_error("connection to " + described(rank), errno);
  return made;
}

std::vector<std::byte> Endpoint::greeting(int rank, const std::string& communicator) const {
  if (communicator.size() > Greeting::most_name_bytes) {
    throw Error(ErrorCode::unsupported,
                "communicator: split from others too many times in a row, without an MPI");
  }
  const node::Contact& wanted = contacts_[static_cast<std::size_t>(rank)];
  return bytes_of({.wanted = wanted.id,
                   .source = rank_,
                   .name_bytes = static_cast<std::uint32_t>(communicator.size())},
                  communicator);
}

std::string Endpoint::described(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  const node::Contact& contact = contacts_[at];
  return "rank " + std::to_string(rank) + " on node " + contact.host_name + " (" +
         os::text(routes_[at]) + ", process " + std::to_string(contact.process) + ")";
}

// ---- connections that come

void Endpoint::accept() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = os::steady_ns();
    for (;;) {
      if (unknown_.size() >= most_unknown) unknown_.erase(unknown_.begin());
      Socket next(os::accept_next(listener()));
      if (!next) break;
      os::send_without_delay(next.get());
      unknown_.push_back({std::move(next), now, {}});
    }
    std::erase_if(unknown_, [&](Unknown& one) {
      return read_greeting(one) || now - one.since_ns > greeting_ns;
    });
    greeting_.store(unknown_.size(), std::memory_order_relaxed);
  } catch (...) {  // no memory: the kernel keeps the connections, or their ranks see them closed
  }
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
    send_all(one.socket.get(), {std::byte{yes}});
    return;
  }
  const auto* name = reinterpret_cast<const char*>(one.bytes.data() + sizeof greeting);
  named_.push_back({std::string(name, greeting.name_bytes),
                    Arrival{.source = greeting.source, .socket = std::move(one.socket)}});
  arrivals_.fetch_add(1, std::memory_order_release);
}

std::vector<Arrival> Endpoint::take(const std::string& communicator) {
  std::vector<Arrival> out;
  const std::lock_guard lock(mutex_);
  std::erase_if(named_, [&](Named& one) {
    if (one.communicator != communicator) return false;
    out.push_back(std::move(one.arrival));
    return true;
  });
  return out;
}

}  // namespace ropewalk::without_mpi
