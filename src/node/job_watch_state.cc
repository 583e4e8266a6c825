// What a watch knows: who has ended, who is silent, which communicators are broken.
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "node/job_watch.hpp"
#include "os/clock.hpp"

namespace ropewalk::node {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

// Nobody waits any more who has not looked for so long; and who looks again later begins anew. A
// program that tests a request now and then waits, too.
constexpr std::int64_t between_looks_ns = 10 * second_ns;
// Waits shorter than this are none: nobody is asked.
constexpr std::int64_t short_wait_ns = second_ns;
// Questions in a time-out: lost packets must not make a node dead. The kernel counts in seconds.
constexpr int questions = 8;
constexpr int longest_interval_s = 5;
// Questions without an answer before other addresses are tried.
constexpr int doubtful_after = 3;
// A processes that answers shows it at once; one behind a firewall that drops never does.
constexpr std::chrono::seconds proof_patience{5};

// The process's own, never destroyed: its thread runs to the end.
struct Place {
  std::mutex mutex;
  JobWatch* watch = nullptr;
  std::string reason;
  bool tried = false;
};
Place& place() {
  static auto* instance = new Place;
  return *instance;
}

std::uint64_t hash(const std::string& text) {
  std::uint64_t out = 14695981039346656037U;  // FNV-1a
  for (const char c : text) out = (out ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return out;
}

// Addresses mean the same in one network namespace of one booted kernel.
std::uint64_t host_hash() {
  char link[64];
  const ssize_t length = readlink("/proc/self/ns/net", link, sizeof link);
  std::string text = os::read_text("/proc/sys/kernel/random/boot_id").value_or("");
  if (length > 0) text.append(link, static_cast<std::size_t>(length));
  return hash(text);
}

Contact own_contact(std::uint16_t port) {
  Contact own;
  own.id = random_id();
  own.host = host_hash();
  own.process = getpid();
  own.port = port;
  for (const os::Address& address : os::interface_addresses()) {
    if (own.addresses < Contact::most_addresses) own.address[own.addresses++] = address;
  }
  if (gethostname(own.host_name, sizeof own.host_name - 1) != 0) own.host_name[0] = '?';
  return own;
}

}  // namespace

JobWatch::JobWatch(int timeout_s)
    : timeout_s_(timeout_s),
      interval_s_(std::clamp(timeout_s / questions, 1, longest_interval_s)),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

JobWatch* JobWatch::of_process(int timeout_s, std::string& reason) {
  Place& here = place();
  const std::lock_guard lock(here.mutex);
  if (!here.tried) {
    here.tried = true;
    auto made = std::unique_ptr<JobWatch>(new JobWatch(timeout_s));
    std::uint16_t port = 0;
    made->listener_ = os::listen_on_any_port(port);
    if (!made->listener_ || !made->bell_) {
      here.reason = "no network to watch the ranks of other nodes: " + os::error_text(errno);
    } else {
      made->own_ = own_contact(port);
      if (made->start(here.reason)) here.watch = made.release();
    }
    if (here.watch != nullptr) {
      pthread_atfork(&JobWatch::before_fork, &JobWatch::after_fork_in_parent,
                     &JobWatch::after_fork_in_child);
    }
  }
  if (here.watch == nullptr) reason = here.reason;
  return here.watch;
}

std::string JobWatch::connect(std::span<const Neighbour> neighbours) {
  const auto deadline = std::chrono::steady_clock::now() + proof_patience;
  std::unique_lock lock(mutex_);
  for (const Neighbour& one : neighbours) {
    if (one.contact.id == own_.id) continue;  // ranks that are threads of one process
    Link& link = link_to(one.contact.id);
    link.contact = one.contact;
    link.initiates = link.initiates || one.initiates;
  }
  wake();
  for (const Neighbour& one : neighbours) {
    if (!one.initiates || one.contact.id == own_.id) continue;
    Link& link = link_to(one.contact.id);
    changed_.wait_until(lock, deadline, [&] {
      return link.proved || link.ended || (!link.failure.empty() && !link.in_round);
    });
    if (link.proved) continue;
    const std::string why = link.in_round || link.failure.empty() ? "no answer" : link.failure;
    return "process " + std::to_string(link.contact.process) + " on node " +
           link.contact.host_name + " cannot be reached on TCP port " +
           std::to_string(link.contact.port) + " (" + why + ")";
  }
  return {};
}

void JobWatch::waiting() noexcept {
  const std::int64_t now = os::steady_ns();
  const std::int64_t last = last_look_ns_.exchange(now, std::memory_order_relaxed);
  if (now - last > between_looks_ns) wait_began_ns_.store(now, std::memory_order_relaxed);
  if (now - wait_began_ns_.load(std::memory_order_relaxed) < short_wait_ns) return;
  if (asking_.load(std::memory_order_relaxed)) return;
  if (!asking_.exchange(true, std::memory_order_relaxed)) wake();
}

JobWatch::Findings JobWatch::find(std::uint64_t communicator) const {
  Findings out;
  const std::lock_guard lock(mutex_);
  out.ended = ended_;
  for (const auto& link : links_) {
    if (link->silent) out.silent.push_back(link->contact.id);
  }
  for (const Broken& one : broken_) {
    if (one.communicator == communicator) out.broken = one;
  }
  return out;
}

void JobWatch::tell(const Broken& broken) {
  const std::lock_guard lock(mutex_);
  learn_broken(broken);
  wake();
}

void JobWatch::tell_ended(const ProcessId& id) {
  const std::lock_guard lock(mutex_);
  learn_ended(id);
  wake();
}

// Once an interval while somebody waits. What lies between two calls counts as two intervals at
// most: if this process was stopped meanwhile, or its machine, nobody else was silent.
void JobWatch::tick(std::int64_t now) {
  if (last_tick_ns_ == 0) return begin_asking(now);
  const std::int64_t since = now - last_tick_ns_;
  const std::int64_t interval = second_ns * interval_s_;
  if (since < interval) return;
  if (now - last_look_ns_.load(std::memory_order_relaxed) > between_looks_ns) return end_asking();
  for (const auto& link : links_) listen_to(*link, since, std::min(since, 2 * interval));
  last_tick_ns_ = now;
}

void JobWatch::listen_to(Link& link, std::int64_t since_ns, std::int64_t counted_ns) {
  if (link.ended || !link.proved) return;
  const std::optional<std::int64_t> heard = link.ns_since_heard();
  const bool answers = heard && *heard <= since_ns;
  link.silence_ns = answers ? 0 : link.silence_ns + counted_ns;
  link.doubtful = link.silence_ns >= second_ns * doubtful_after * interval_s_;
  // An interval without an answer is usual: the question came at its end.
  const bool silent = link.silence_ns >= second_ns * (timeout_s_ + interval_s_);
  if (silent && !link.silent) news_.fetch_add(1, std::memory_order_release);
  link.silent = silent;
}

void JobWatch::begin_asking(std::int64_t now) {
  last_tick_ns_ = now;
  for (const auto& link : links_) {
    Link::for_each_of(*link, [&](Connection& one) { os::keep_asking(one.socket(), interval_s_); });
  }
}

void JobWatch::end_asking() {
  asking_.store(false, std::memory_order_relaxed);
  last_tick_ns_ = 0;
  for (const auto& link : links_) {
    link->silence_ns = 0;
    link->doubtful = link->silent = false;
    Link::for_each_of(*link, [](Connection& one) { os::stop_asking(one.socket()); });
  }
}

void JobWatch::learn(const Frame& frame) {
  if (frame.kind == Frame::ended) learn_ended(frame.subject);
  if (frame.kind == Frame::broken) {
    learn_broken({frame.communicator, frame.subject, frame.seconds});
  }
}

void JobWatch::learn_ended(const ProcessId& id) {
  if (id == own_.id || is_ended(id)) return;
  ended_.push_back(id);
  if (Link* link = find_link(id)) {
    link->ended = true;
    link->silent = false;
    link->made.close();
    link->taken.close();
  }
  news_.fetch_add(1, std::memory_order_release);
  changed_.notify_all();
}

void JobWatch::learn_broken(const Broken& broken) {
  for (const Broken& known : broken_) {
    if (known.communicator == broken.communicator) return;
  }
  broken_.push_back(broken);
  news_.fetch_add(1, std::memory_order_release);
}

void JobWatch::tell_all() {
  for (const auto& link : links_) {
    for (Connection* one : {&link->made, &link->taken}) {
      if (*one && !tell_one(*one)) one->close();
    }
  }
}

bool JobWatch::tell_one(Connection& connection) {
  Frame frame;
  frame.sender = own_.id;
  for (frame.kind = Frame::ended; connection.told_ended < ended_.size(); ++connection.told_ended) {
    frame.subject = ended_[connection.told_ended];
    if (!connection.send(frame)) return false;
  }
  frame.kind = Frame::broken;
  for (; connection.told_broken < broken_.size(); ++connection.told_broken) {
    const Broken& one = broken_[connection.told_broken];
    frame.subject = one.subject;
    frame.communicator = one.communicator;
    frame.seconds = one.seconds;
    if (!connection.send(frame)) return false;
  }
  return true;
}

Link* JobWatch::find_link(const ProcessId& id) {
  const auto found =
      std::ranges::find_if(links_, [&](const auto& link) { return link->contact.id == id; });
  return found == links_.end() ? nullptr : found->get();
}

Link& JobWatch::link_to(const ProcessId& id) {
  if (Link* known = find_link(id)) return *known;
  links_.push_back(std::make_unique<Link>());
  links_.back()->contact.id = id;
  return *links_.back();
}

bool JobWatch::is_ended(const ProcessId& id) const {
  return std::ranges::find(ended_, id) != ended_.end();
}

// A child has no thread, and must not hold the parent's connections open beyond its end.
void JobWatch::before_fork() noexcept {
  place().mutex.lock();
  if (place().watch != nullptr) place().watch->mutex_.lock();
}

void JobWatch::after_fork_in_parent() noexcept {
  if (place().watch != nullptr) place().watch->mutex_.unlock();
  place().mutex.unlock();
}

void JobWatch::after_fork_in_child() noexcept {
  Place& here = place();
  if (JobWatch* parents = std::exchange(here.watch, nullptr)) {
    here.reason = "this is a child of fork";
    parents->close_all();
    parents->mutex_.unlock();
  }
  here.mutex.unlock();
}

void JobWatch::close_all() noexcept {
  listener_.reset();
  bell_.reset();
  for (const auto& guest : guests_) guest->close();
  for (const auto& link : links_) {
    link->made.close();
    link->taken.close();
    for (Connection& attempt : link->attempts) attempt.close();
  }
}

}  // namespace ropewalk::node
