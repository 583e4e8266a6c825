// The rounds of copies, and the meetings around them; workers.hpp has the invariants.
#include "halo/workers.hpp"

#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>

#include "halo/streaming.hpp"

namespace ropewalk::halo {

namespace {

constexpr std::uint64_t copies_left = 0xffffffffU;  // of a word of `open_`

// Parts below this are not worth their hand-over, which takes some 0.2 us: a copy inside the caches
// moves some 10 KiB in a microsecond.
constexpr std::size_t least_part_bytes = std::size_t{16} << 10;

// Parts for each worker, so that one who comes late leaves the others some of its own.
constexpr std::size_t parts_a_worker = 2;

}  // namespace

Workers::Workers(int count, bool crowded) noexcept
    : count_(count),
      policy_(crowded ? &os::wait_for_threads_crowded : &os::wait_for_threads),
      news_(crowded),
      arrivals_(crowded) {}

void Workers::share_erased(std::size_t items, Erased task, void* object) noexcept {
  task_.store(task, std::memory_order_relaxed);
  object_.store(object, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
  // Pairs with the acquire in take_one().
  open_.store(++round_ << 32 | items, std::memory_order_release);
  news_.advance();
  while (take_one()) {
  }
  // The rest is being copied: it takes microseconds, unless a worker has lost its core.
  os::Waiting wait(*policy_);
  // Pairs with the release in take_one().
  while (finished_.load(std::memory_order_acquire) != items) {
    wait.pause([](std::int64_t) { sched_yield(); });
  }
}

bool Workers::take_one() noexcept {
  std::uint64_t seen = open_.load(std::memory_order_acquire);
  for (;;) {
    if ((seen & copies_left) == 0) return false;
    const Erased task = task_.load(std::memory_order_relaxed);
    void* object = object_.load(std::memory_order_relaxed);
    // Release keeps the two loads before it. Acquire pairs with the release in share_erased().
    if (!open_.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
      continue;
    }
    task(object, (seen & copies_left) - 1);
    finished_.fetch_add(1, std::memory_order_release);
    return true;
  }
}

void Workers::gather() noexcept {
  const std::uint32_t all = met_ + static_cast<std::uint32_t>(count_ - 1);
  for (std::uint32_t seen = arrivals_.value(); seen != all; seen = arrivals_.value()) {
    arrivals_.wait_beyond(seen);
  }
}

void Workers::dismiss(std::optional<Error> error) noexcept {
  gather();
  met_ += static_cast<std::uint32_t>(count_ - 1);
  error_ = std::move(error);
  // Pairs with the acquire in help().
  dismissals_.fetch_add(1, std::memory_order_release);
  news_.advance();
}

void Workers::help() {
  complete_streaming_stores();  // to a send_buffer(), of which the leader tells the neighbour
  const std::uint32_t before = dismissals_.load(std::memory_order_relaxed);
  arrivals_.advance();
  os::Waiting wait(*policy_);
  for (;;) {
    const std::uint32_t news = news_.value();
    if (take_one()) {
      wait.restart();
      continue;
    }
    // Pairs with the release in dismiss().
    if (dismissals_.load(std::memory_order_acquire) != before) break;
    wait.pause([&](std::int64_t longest_ns) { news_.sleep(news, longest_ns); });
  }
  // A text of its own: other workers read theirs, and the leader's goes when it is rethrown.
  if (error_) throw Error(error_->code(), std::string(error_->what()));
}

std::vector<kernels::StridedCopy> divided(const std::vector<kernels::StridedCopy>& copies,
                                          int workers) {
  if (workers == 1) return copies;
  std::size_t bytes = 0;
  for (const kernels::StridedCopy& copy : copies) bytes += copy.bytes();
  const std::size_t parts = parts_a_worker * static_cast<std::size_t>(workers);
  std::vector<kernels::StridedCopy> out;
  for (const kernels::StridedCopy& copy : copies) {
    copy.append_parts(std::max(least_part_bytes, bytes / parts), out);
  }
  return out;
}

MeasuringWorkers::MeasuringWorkers(Workers& workers) : workers_(workers) {
  const threads::ThreadOptions options{.name = "rw-halo",
                                       .owner = "halo: a thread that measures strategies",
                                       .remedy = "ask for fewer workers"};
  try {
    for (int i = 1; i < workers_.count(); ++i) {
      threads_.emplace_back(options, [this] { workers_.help(); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

MeasuringWorkers::~MeasuringWorkers() { stop(); }

void MeasuringWorkers::stop() noexcept {
  // Those that could not be started count as come.
  for (auto i = static_cast<int>(threads_.size()) + 1; i < workers_.count(); ++i) {
    workers_.arrivals_.advance();
  }
  workers_.dismiss();
  for (threads::Thread& thread : threads_) thread.join();
}

}  // namespace ropewalk::halo
