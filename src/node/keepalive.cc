#include "node/keepalive.hpp"

#include <algorithm>
#include <optional>

#include "os/clock.hpp"

namespace ropewalk::node {
namespace {

using os::second_ns;

// A thread that has not looked for so long does not wait any more; its next look begins a new wait.
// A program that tests a request now and then waits, too.
constexpr std::int64_t longest_between_looks_ns = 10 * second_ns;
// Shorter waits do not count: nobody is asked for their sake.
constexpr std::int64_t short_wait_ns = second_ns;
// So many questions go out in one time-out: lost packets must not make a node dead. The kernel
// counts in seconds.
constexpr int questions = 8;
constexpr int longest_interval_s = 5;
// Questions without an answer before other addresses are tried.
constexpr int doubtful_after = 3;

}  // namespace

Keepalive::Keepalive(int timeout_s) noexcept
    : timeout_s_(timeout_s),
      interval_s_(std::clamp(timeout_s / questions, 1, longest_interval_s)) {}

bool Keepalive::waiting() noexcept {
  const std::int64_t now = os::steady_ns();
  const std::int64_t last = last_look_ns_.exchange(now, std::memory_order_relaxed);
  if (now - last > longest_between_looks_ns) wait_began_ns_.store(now, std::memory_order_relaxed);
  if (now - wait_began_ns_.load(std::memory_order_relaxed) < short_wait_ns) return false;
  return !active() && !active_.exchange(true, std::memory_order_relaxed);
}

std::int64_t Keepalive::next_ns() const noexcept {
  return active() ? last_tick_ns_ + second_ns * interval_s_ : INT64_MAX;
}

void Keepalive::use(const Connection& connection) const noexcept {
  if (active()) os::start_keepalive(connection.socket(), interval_s_);
}

// Runs once an interval while somebody waits. The time between two calls counts as two intervals at
// most: if this process or its machine was stopped meanwhile, nobody else was silent.
bool Keepalive::tick(MonitoredProcesses processes, std::int64_t now) {
  if (!active()) return false;
  if (last_tick_ns_ == 0) return begin(processes, now), false;
  const std::int64_t since = now - last_tick_ns_;
  const std::int64_t interval = second_ns * interval_s_;
  if (since < interval) return false;
  if (now - last_look_ns_.load(std::memory_order_relaxed) > longest_between_looks_ns) {
    return end(processes), false;
  }
  last_tick_ns_ = now;
  bool news = false;
  for (const auto& process : processes) {
    news |= falls_silent(*process, since, std::min(since, 2 * interval));
  }
  return news;
}

bool Keepalive::falls_silent(MonitoredProcess& process, std::int64_t since_ns,
                             std::int64_t counted_ns) const {
  if (process.ended || !process.reached_at) return false;
  const std::optional<std::int64_t> heard = process.ns_since_heard();
  const bool answers = heard && *heard <= since_ns;
  process.silence_ns = answers ? 0 : process.silence_ns + counted_ns;
  process.doubtful = process.silence_ns >= second_ns * doubtful_after * interval_s_;
  // An interval without an answer is usual: the question came at its end.
  const bool silent = process.silence_ns >= second_ns * (timeout_s_ + interval_s_);
  return std::exchange(process.silent, silent) != silent && silent;
}

void Keepalive::begin(MonitoredProcesses processes, std::int64_t now) {
  last_tick_ns_ = now;
  for (const auto& process : processes) {
    MonitoredProcess::for_each_connection(*process, [&](Connection& one) { use(one); });
  }
}

void Keepalive::end(MonitoredProcesses processes) {
  active_.store(false, std::memory_order_relaxed);
  last_tick_ns_ = 0;
  for (const auto& process : processes) {
    process->silence_ns = 0;
    process->doubtful = process->silent = false;
    MonitoredProcess::for_each_connection(
        *process, [](Connection& one) { os::stop_keepalive(one.socket()); });
  }
}

}  // namespace ropewalk::node
