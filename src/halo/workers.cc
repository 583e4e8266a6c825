// The rounds of copies, and the meetings around them; workers.hpp has the invariants.
#include "halo/workers.hpp"

#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>

#include "halo/streaming.hpp"

namespace ropewalk::halo {

namespace {

constexpr std::uint64_t copies_left = 0xffffffffU;  // of the word of a share

// What is not worth the meeting of the workers, which takes a microsecond or two: one thread copies
// as much in that time.
constexpr std::size_t least_shared_bytes = std::size_t{32} << 10;

// Parts below these are not worth their hand-over, which takes some 0.2 us, or the system call of a
// copy by the kernel, which takes a microsecond before its first byte.
constexpr std::size_t least_part_bytes = std::size_t{4} << 10;
constexpr std::size_t least_kernel_part_bytes = std::size_t{64} << 10;

// Parts of a copy for each worker, so that one who comes late leaves the others some of its own.
constexpr std::size_t parts_a_worker = 2;

// Each copy is cut by itself, and each worker has the same share of each. Ghosts of two faces may
// lie side by side along the fastest dimension, those above a line of cells and those below the
// next: two workers at one face each would write to the same cache lines.
template <class Copy>
std::vector<Copy> divided(const std::vector<Copy>& copies, int workers, std::size_t least_bytes) {
  if (workers == 1) return copies;
  const std::size_t parts = parts_a_worker * static_cast<std::size_t>(workers);
  std::vector<std::vector<Copy>> of_workers(static_cast<std::size_t>(workers));
  for (const Copy& copy : copies) {
    std::vector<Copy> cut;
    copy.append_parts(std::max(least_bytes, copy.bytes() / parts), cut);
    for (std::size_t i = 0; i < cut.size(); ++i) {
      of_workers[i * of_workers.size() / cut.size()].push_back(cut[i]);
    }
  }
  std::vector<Copy> out;
  for (const std::vector<Copy>& own : of_workers) out.insert(out.end(), own.begin(), own.end());
  return out;
}

}  // namespace

Workers::Workers(int count, int sharing, bool crowded)
    : count_(count),
      sharing_(sharing),
      policy_(crowded ? &os::wait_for_threads_crowded : &os::wait_for_threads),
      news_(crowded),
      arrivals_(crowded),
      shares_(static_cast<std::size_t>(sharing)) {}

void Workers::share_erased(std::size_t items, Erased task, void* object) noexcept {
  task_.store(task, std::memory_order_relaxed);
  object_.store(object, std::memory_order_relaxed);
  items_.store(items, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
  ++round_;
  for (int worker = 0; worker < sharing_; ++worker) {
    const std::size_t left = first_of(worker + 1, items) - first_of(worker, items);
    // Pairs with the acquire in take_from().
    shares_[static_cast<std::size_t>(worker)].open.store(round_ << 32 | left,
                                                         std::memory_order_release);
  }
  news_.advance();
  while (take_one(0)) {
  }
  // The rest is being copied: it takes microseconds, unless a worker has lost its core.
  os::Waiting wait(*policy_);
  // Pairs with the release in take_from().
  while (finished_.load(std::memory_order_acquire) != items) {
    wait.pause([](std::int64_t) { sched_yield(); });
  }
}

void Workers::run(const std::vector<kernels::StridedCopy>& copies,
                  std::size_t streaming_bytes) noexcept {
  std::size_t bytes = 0;
  for (const kernels::StridedCopy& copy : copies) bytes += copy.bytes();
  const auto task = [&](std::size_t i) { copies[i].run(streaming_bytes); };
  if (bytes >= least_shared_bytes) return share(copies.size(), task);
  for (std::size_t i = 0; i < copies.size(); ++i) task(i);
}

std::size_t Workers::first_of(int worker, std::size_t items) const noexcept {
  return items * static_cast<std::size_t>(worker) / static_cast<std::size_t>(sharing_);
}

bool Workers::take_one(int worker) noexcept {
  for (int i = 0; i < sharing_; ++i) {
    if (take_from((worker + i) % sharing_)) return true;
  }
  return false;
}

bool Workers::take_from(int owner) noexcept {
  std::atomic<std::uint64_t>& open = shares_[static_cast<std::size_t>(owner)].open;
  std::uint64_t seen = open.load(std::memory_order_acquire);
  for (;;) {
    const std::uint64_t left = seen & copies_left;
    if (left == 0) return false;
    const Erased task = task_.load(std::memory_order_relaxed);
    void* object = object_.load(std::memory_order_relaxed);
    const std::size_t items = items_.load(std::memory_order_relaxed);
    // Release keeps the loads before it. Acquire pairs with the release in share_erased().
    if (!open.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      continue;
    }
    task(object, first_of(owner, items) + left - 1);
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

void Workers::help(int worker) {
  complete_streaming_stores();  // to a send_buffer(), of which the leader tells the neighbour
  const std::uint32_t before = dismissals_.load(std::memory_order_relaxed);
  arrivals_.advance();
  os::Waiting wait(*policy_);
  for (;;) {
    const std::uint32_t news = news_.value();
    if (worker < sharing_ && take_one(worker)) {
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

int sharing_workers(int workers, std::size_t bytes, std::size_t bytes_a_worker) noexcept {
  const std::size_t worth = bytes / bytes_a_worker;
  return static_cast<int>(std::clamp<std::size_t>(worth, 1, static_cast<std::size_t>(workers)));
}

std::vector<kernels::StridedCopy> divided(const std::vector<kernels::StridedCopy>& copies,
                                          int workers) {
  return divided(copies, workers, least_part_bytes);
}

std::vector<KernelCopy> divided(const std::vector<KernelCopy>& copies, int workers) {
  return divided(copies, workers, least_kernel_part_bytes);
}

MeasuringWorkers::MeasuringWorkers(Workers& workers) : workers_(workers) {
  const threads::ThreadOptions options{.name = "rw-halo",
                                       .owner = "halo: a thread that measures strategies",
                                       .remedy = "ask for fewer workers"};
  try {
    for (int i = 1; i < workers_.sharing(); ++i) {
      threads_.emplace_back(options, [this, i] { workers_.help(i); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

MeasuringWorkers::~MeasuringWorkers() { stop(); }

void MeasuringWorkers::stop() noexcept {
  // Those that were not started count as come.
  for (auto i = static_cast<int>(threads_.size()) + 1; i < workers_.count(); ++i) {
    workers_.arrivals_.advance();
  }
  workers_.dismiss();
  for (threads::Thread& thread : threads_) thread.join();
}

}  // namespace ropewalk::halo
