// The threads of a rank that share the copies of its exchanges (Halo::start_worker, wait_worker).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "halo/kernel_copy.hpp"
#include "kernels/strided_copy.hpp"
#include "os/epoch.hpp"
#include "os/waiting.hpp"
#include "ropewalk/error.hpp"
#include "threads/thread.hpp"

namespace ropewalk::halo {

// Worker 0 leads: it alone talks to MPI and to other ranks, and hands out copies by share(). The
// others help: they take what is handed out until the leader lets them go. The leader takes part in
// the copies, and makes them all where no other worker is there. Only the first sharing() workers
// copy: small exchanges are not worth more of them. The others come and are let go all the same,
// because what they wrote must be there, and what was copied they read.
//
// Invariants:
// 1. Each worker that copies has a share of them: its word has the number of the round in its upper
//    half, and in its lower half how many of the share nobody has taken. A copy is taken by
//    compare-exchange, so by one worker: of its own share first, then of the others'. So copies
//    stay with the worker in whose caches they lie, unless it comes late.
// 2. The leader writes `task_`, `object_` and `items_` only when all copies of the round before are
//    finished. Who takes a copy has read them before its compare-exchange, which fails where the
//    round is over: so they are of the round of that copy.
// 3. What the leader wrote before share() is seen by who copies: it has acquired the word. What was
//    copied is seen by the leader after share(): it has acquired `finished_`.
// 4. The leader lets go only when all others have come, and a worker comes again only after it was
//    let go: so each sees each dismissal once.
class Workers {
 public:
  Workers(int count, bool crowded) : Workers(count, count, crowded) {}
  // crowded: threads outnumber cores
  Workers(int count, int sharing, bool crowded);

  int count() const noexcept { return count_; }
  int sharing() const noexcept { return sharing_; }  // 1 to count()

  // ---- worker 0

  // Calls task(i) for each i below `items`, in any order and on any worker; each begins with a part
  // of them that is its own. Returns when all have
  // returned. The task must not throw.
  template <class Task>
  void share(std::size_t items, Task&& task) noexcept {
    if (sharing_ == 1 || items < 2) {
      for (std::size_t i = 0; i < items; ++i) task(i);
      return;
    }
    using Type = std::remove_reference_t<Task>;
    share_erased(
        items, [](void* object, std::size_t i) { (*static_cast<Type*>(object))(i); },
        const_cast<void*>(static_cast<const void*>(std::addressof(task))));
  }
  // The same for copies that divided() has made, unless they are too small to be shared.
  void run(const std::vector<kernels::StridedCopy>& copies,
           std::size_t streaming_bytes = SIZE_MAX) noexcept;
  // Returns when the others are in help(), and have written what they wrote before.
  void gather() noexcept;
  // Gathers, and lets the others go. With an error each of them throws the same.
  void dismiss(std::optional<Error> error = {}) noexcept;
  // Calls body() beside the others, then dismisses them, in either case.
  template <class Body>
  void lead(Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      dismiss(error);
      throw;
    } catch (...) {
      dismiss(
          Error(ErrorCode::internal, "halo: worker 0 has failed, expected its exchange to end"));
      throw;
    }
    dismiss();
  }

  // ---- the others

  // Helps until it is let go.
  void help(int worker);

 private:
  friend class MeasuringWorkers;
  using Erased = void (*)(void*, std::size_t);
  struct alignas(128) Share {
    std::atomic<std::uint64_t> open{0};
  };

  void share_erased(std::size_t items, Erased task, void* object) noexcept;
  std::size_t first_of(int worker, std::size_t items) const noexcept;
  bool take_one(int worker) noexcept;
  bool take_from(int owner) noexcept;

  int count_;
  int sharing_;
  std::uint64_t round_ = 0;       // of the leader, as is `met_`
  std::uint32_t met_ = 0;         // arrivals before the last dismissal
  std::optional<Error> error_;    // of the last dismissal
  const os::WaitPolicy* policy_;  // of who helps
  os::Epoch news_;                // copies were handed out, or the workers let go
  os::Epoch arrivals_;            // of the others, in all
  std::vector<Share> shares_;     // one for each that copies
  alignas(128) std::atomic<Erased> task_{nullptr};
  std::atomic<void*> object_{nullptr};
  std::atomic<std::size_t> items_{0};
  alignas(128) std::atomic<std::size_t> finished_{0};
  alignas(128) std::atomic<std::uint32_t> dismissals_{0};
};

// How many of `workers` threads share the copies of an exchange of so many bytes.
int sharing_workers(int workers, std::size_t bytes, std::size_t bytes_a_worker) noexcept;

// The same copies in parts that so many workers can share out: first those for worker 0, from the
// begin of each copy, and so on. One worker has them as they are.
std::vector<kernels::StridedCopy> divided(const std::vector<kernels::StridedCopy>&, int workers);
std::vector<KernelCopy> divided(const std::vector<KernelCopy>&, int workers);

// Threads that help while `automatic` measures: those of the caller are not there.
class MeasuringWorkers {
 public:
  // Throws Error(system) where the system cannot start a thread.
  explicit MeasuringWorkers(Workers& workers);
  ~MeasuringWorkers();
  MeasuringWorkers(const MeasuringWorkers&) = delete;
  MeasuringWorkers& operator=(const MeasuringWorkers&) = delete;

 private:
  void stop() noexcept;

  Workers& workers_;
  std::vector<threads::Thread> threads_;
};

}  // namespace ropewalk::halo
