#include "node/failure_detector.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

#include "os/clock.hpp"
#include "os/file.hpp"
#include "threads/thread.hpp"

namespace ropewalk::node {
namespace {

// A process that answers does so at once; one behind a firewall that drops never does.
constexpr std::chrono::seconds answer_patience{5};
// The stack is larger than the thread's dozen of functions need, because the static TLS of the
// program lies on it, too.
constexpr std::size_t stack_bytes = std::size_t{256} << 10;

// This is the detector of the process. It is never destroyed: its thread runs to the end.
struct Place {
  std::mutex mutex;
  FailureDetector* detector = nullptr;
  std::string reason;
  bool tried = false;
};
Place& place() {
  static auto* instance = new Place;
  return *instance;
}

}  // namespace

FailureDetector::FailureDetector(int timeout_s)
    : wake_up_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), keepalive_(timeout_s) {}

FailureDetector* FailureDetector::of_process(int timeout_s, std::string& reason) {
  Place& here = place();
  const std::lock_guard lock(here.mutex);
  if (!std::exchange(here.tried, true)) {
    auto made = std::unique_ptr<FailureDetector>(new FailureDetector(timeout_s));
    if (made->open(here.reason) && made->start(here.reason)) here.detector = made.release();
    if (here.detector != nullptr) {
      pthread_atfork(&FailureDetector::before_fork, &FailureDetector::after_fork_in_parent,
                     &FailureDetector::after_fork_in_child);
    }
  }
  if (here.detector == nullptr) reason = here.reason;
  return here.detector;
}

bool FailureDetector::open(std::string& reason) {
  if (wake_up_ && connections_.listen()) return true;
  reason = "no network to watch the ranks of other nodes: " + os::error_text(errno);
  return false;
}

// The thread lives as long as the process: nobody joins it.
bool FailureDetector::start(std::string& reason) {
  try {
    threads::Thread({.name = "rw-failures",
                     .stack_bytes = stack_bytes,
                     .owner = "the thread that watches them",
                     .remedy = "set ROPEWALK_TIMEOUT=off"},
                    [this] { run(); })
        .detach();
    return true;
  } catch (const std::exception& error) {
    reason = error.what();
    return false;
  }
}

// ---- the thread

void FailureDetector::run() noexcept {
  try {
    loop();
  } catch (...) {  // no memory: nobody is watched any more
  }
}

void FailureDetector::wake() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_up_.get(), &one, sizeof one);
}

void FailureDetector::loop() {
  std::vector<pollfd> descriptors;
  for (;;) {
    int timeout_ms = 0;
    const std::vector<PollEntry> entries = prepare(timeout_ms);
    descriptors.clear();
    for (const PollEntry& one : entries) descriptors.push_back({one.descriptor, one.wanted, 0});
    if (poll(descriptors.data(), descriptors.size(), timeout_ms) < 0 && errno != EINTR) return;
    const std::lock_guard lock(mutex_);
    const std::int64_t now = os::steady_ns();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (descriptors[i].revents != 0) handle(entries[i], descriptors[i].revents, now);
    }
    connections_.remove_closed();
    changed_.notify_all();
  }
}

// Does what it is time for. Then it lists what poll is to be asked, and for how long at most (-1:
// for ever).
std::vector<PollEntry> FailureDetector::prepare(int& timeout_ms) {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = os::steady_ns();
  connections_.attend(now);
  if (keepalive_.tick(connections_.processes(), now)) notices_.count_news();
  connections_.send_notices();
  changed_.notify_all();
  const std::int64_t next = std::min(connections_.next_ns(now), keepalive_.next_ns());
  const std::int64_t left_ms = std::max<std::int64_t>(0, next - now) / 1'000'000 + 1;
  timeout_ms = next == INT64_MAX ? -1 : static_cast<int>(left_ms);
  std::vector<PollEntry> entries{{PollEntry::wake_up, wake_up_.get(), POLLIN}};
  connections_.add_entries(entries);
  return entries;
}

void FailureDetector::handle(const PollEntry& entry, short events, std::int64_t now) {
  if (entry.kind != PollEntry::wake_up) return connections_.handle(entry, events, now);
  std::uint64_t wake_ups = 0;
  [[maybe_unused]] const ssize_t got = read(wake_up_.get(), &wake_ups, sizeof wake_ups);
}

// ---- its users

std::string FailureDetector::connect(std::span<const Neighbour> neighbours) {
  const auto deadline = std::chrono::steady_clock::now() + answer_patience;
  std::unique_lock lock(mutex_);
  for (const Neighbour& one : neighbours) {
    if (one.contact.id == own().id) continue;  // ranks that are threads of one process
    MonitoredProcess& process = connections_.process(one.contact.id);
    process.contact = one.contact;
    process.initiates = process.initiates || one.initiates;
  }
  wake();
  for (const Neighbour& one : neighbours) {
    if (!one.initiates || one.contact.id == own().id) continue;
    const MonitoredProcess& process = connections_.process(one.contact.id);
    changed_.wait_until(lock, deadline, [&] {
      return process.reached_at || process.ended || (!process.failure.empty() && !process.in_round);
    });
    if (process.reached_at) continue;
    const bool no_answer = process.in_round || process.failure.empty();
    return "process " + std::to_string(process.contact.process) + " on node " +
           process.contact.host_name + " cannot be reached on TCP port " +
           std::to_string(process.contact.port) + " (" +
           (no_answer ? "no answer" : process.failure) + ")";
  }
  return {};
}

void FailureDetector::waiting() noexcept {
  if (keepalive_.waiting()) wake();
}

FailureDetector::Findings FailureDetector::find(std::uint64_t communicator) const {
  const std::lock_guard lock(mutex_);
  Findings out{notices_.ended(), {}, notices_.broken(communicator)};
  for (const auto& process : connections_.processes()) {
    if (process->silent) out.silent.push_back(process->contact.id);
  }
  return out;
}

void FailureDetector::tell(const BrokenCommunicator& notice) {
  const std::lock_guard lock(mutex_);
  notices_.add_broken(notice);
  wake();
}

void FailureDetector::tell_ended(const ProcessId& id) {
  const std::lock_guard lock(mutex_);
  connections_.end(id);
  wake();
}

// ---- fork: a child has no thread, and must not hold the parent's connections open beyond its end

void FailureDetector::before_fork() noexcept {
  place().mutex.lock();
  if (place().detector != nullptr) place().detector->mutex_.lock();
}

void FailureDetector::after_fork_in_parent() noexcept {
  if (place().detector != nullptr) place().detector->mutex_.unlock();
  place().mutex.unlock();
}

void FailureDetector::after_fork_in_child() noexcept {
  Place& here = place();
  if (FailureDetector* parents = std::exchange(here.detector, nullptr)) {
    here.reason = "this is a child of fork";
    parents->connections_.close_all();
    parents->wake_up_.reset();
    parents->mutex_.unlock();
  }
  here.mutex.unlock();
}

}  // namespace ropewalk::node
