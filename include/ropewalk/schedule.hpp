// Loops that compute while messages travel: work stealing, a team of threads, and both together
// with an exchange (Meadows and Ishikawa, IWOMP 2017; Meadows et al. 2018).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "ropewalk/communicator.hpp"
#include "ropewalk/detail/poll_clock.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/export.hpp"

namespace ropewalk {

struct IterationRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool empty() const noexcept { return begin == end; }
  std::size_t size() const noexcept { return end - begin; }
};

// A loop whose iterations are dealt to the workers beforehand, in equal runs. A worker that has
// done its own steals half of what another has left, from the end: it chooses the worker with most
// left, on its own NUMA node if any there has some. Communicating workers, which are the first
// ones, start without iterations and join in when their messages are done; where all workers
// communicate, all start with a share.
//
//   WorkStealing loop(sites, omp_get_max_threads(), lanes);  // once; runs as often as one likes
//   #pragma omp parallel
//   {
//     const int worker = omp_get_thread_num();
//     if (worker < lanes) plan.exchange_lane(worker);
//     loop.run(worker, [&](std::size_t begin, std::size_t end) { ... });
//     #pragma omp barrier
//   }
//
// In each loop, each iteration runs once. All workers must take part in each loop, until next()
// returns an empty range, and a barrier of the workers must lie between two loops; then the next
// loop needs no preparation. There is no lock and no allocation. A block costs a compare-exchange
// (some 10 ns), and a steal reads a cache line of each worker.
class RW_EXPORT WorkStealing {
 public:
  // `block` iterations are handed out at a time; 0: about 256 blocks a worker. Throws
  // Error(argument) for no workers, more communicating workers than workers, or 2^32 blocks and
  // more.
  WorkStealing(std::size_t iterations, int workers, int communicating_workers = 0,
               std::size_t block = 0);
  WorkStealing(WorkStealing&&) noexcept;
  WorkStealing& operator=(WorkStealing&&) noexcept;
  ~WorkStealing();

  std::size_t iterations() const noexcept;
  int workers() const noexcept;
  int communicating_workers() const noexcept;
  std::size_t block() const noexcept;

  // What this worker runs next: up to block() iterations. An empty range means that the loop has
  // none left for it; its next call belongs to the next loop. Throws Error(argument) for a number
  // that is no worker's, and where another worker took no part in the last loop.
  IterationRange next(int worker);

  // Calls body(begin, end) for every range that next(worker) returns.
  template <class Body>
  void run(int worker, Body&& body) {
    for (IterationRange range = next(worker); !range.empty(); range = next(worker)) {
      body(range.begin, range.end);
    }
  }

  // Prepares a new loop after one that an exception has cut short, or for another number of
  // iterations (block 0: chosen again). One thread calls it, while no worker is in the loop.
  void reset();
  void reset(std::size_t iterations, std::size_t block = 0);

  // Blocks that a worker has run in all loops; exact when it is in none.
  struct Counts {
    std::uint64_t own = 0;     // dealt to it beforehand, or left of what it has stolen
    std::uint64_t stolen = 0;  // taken from another worker, one by each steal
  };
  Counts counts(int worker) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct ThreadTeamOptions {
  int threads = 0;  // with the caller's; 0: one for each core that this rank has for itself
  bool pin = true;  // binds each thread but the caller's to a core, where there are enough
};

// Threads that run loops together and stay between runs. Between runs they spin at first and sleep
// after about a millisecond; where threads outnumber cores they yield or sleep at once.
//
// Only the thread that made a team uses it; that thread is worker 0.
class RW_EXPORT ThreadTeam {
 public:
  static constexpr int max_threads = 4096;

  // Not collective: takes the cores of the affinity mask as if no other process used them. Does not
  // bind threads where the job has further ranks, which may have the same cores.
  explicit ThreadTeam(const ThreadTeamOptions& = {});
  // Collective: ranks of a node that may use the same cores share them out. Does not bind threads
  // where the job has ranks that are not in the communicator.
  explicit ThreadTeam(Communicator, const ThreadTeamOptions& = {});
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const noexcept;
  bool crowded() const noexcept;  // threads outnumber cores

  // Calls task(worker) on all workers at once; returns when all are done. Rethrows the first
  // exception; workers that wait in barrier() for the one that threw end their task there. A task
  // may run another team, but not its own: that throws Error(argument), but in a team of one
  // thread, which runs it at once.
  template <class Task>
  void run(Task&& task) {
    using Type = std::remove_reference_t<Task>;
    run_erased([](void* object, int worker) { (*static_cast<Type*>(object))(worker); },
               const_cast<void*>(static_cast<const void*>(std::addressof(task))));
  }
  // All workers call it in a task. Each may read after it what the others wrote before it.
  void barrier();

 private:
  struct State;
  void run_erased(void (*task)(void*, int), void* object);
  std::unique_ptr<State> state_;
};

// ---- an exchange behind a loop

// An exchange that one thread starts, polls and waits for: Halo, MessagePlan.
template <class E>
concept PolledExchange = requires(E& exchange) {
  exchange.start();
  { exchange.test() } -> std::convertible_to<bool>;
  exchange.wait();
};
// An exchange whose lanes several threads can drive: Halo, MessagePlan.
template <class E>
concept LaneExchange = requires(E& exchange, int lane) {
  exchange.exchange_lane(lane);
  { exchange.lanes() } -> std::convertible_to<int>;
};

// An exchange whose copies several workers share: Halo.
template <class E>
concept SharedExchange = PolledExchange<E> && requires(E& exchange, int worker) {
  exchange.start_worker(worker);
  exchange.wait_worker(worker);
  { exchange.workers() } -> std::convertible_to<int>;
};

// Calls work() again and again while an exchange is under way, and between the calls makes progress
// with its messages, for at most 6 % of the time. Ends when the exchange is complete, and returns
// true, or when work() returns false because nothing is left to do, and returns false. In either
// case wait() is still to be called.
template <PolledExchange Exchange, class Work>
bool work_beside(Exchange& exchange, Work&& work) {
  detail::PollClock clock;
  while (work()) {
    if (!clock.due()) continue;
    const bool done = exchange.test();
    clock.polled();
    if (done) return true;
  }
  return false;
}

// The share of one of n communicating workers in an exchange: worker w drives the lanes w, w + n,
// ... An exchange without lanes is driven by worker 0 alone, and all n share its copies where it is
// a Halo made for n workers. Returns when the share is complete.
template <class Exchange>
void exchange_share(int worker, int communicating, Exchange& exchange) {
  if constexpr (SharedExchange<Exchange>) {
    if (communicating > 1 && exchange.workers() == communicating) {
      exchange.start_worker(worker);
      return exchange.wait_worker(worker);
    }
  }
  if constexpr (LaneExchange<Exchange>) {
    const int lanes = exchange.lanes();
    for (int lane = worker; lane < lanes; lane += communicating) exchange.exchange_lane(lane);
  } else {
    static_assert(PolledExchange<Exchange>);
    if (worker != 0) return;
    exchange.start();
    exchange.wait();
  }
}

// The share of worker 0 in a loop whose exchange it polls between its blocks.
template <PolledExchange Exchange, class Interior>
void run_beside(WorkStealing& loop, Exchange& exchange, Interior& interior) {
  const bool done = work_beside(exchange, [&] {
    const IterationRange range = loop.next(0);
    if (range.empty()) return false;
    interior(range.begin, range.end);
    return true;
  });
  if (done) loop.run(0, interior);
}

// A loop all of whose workers share the copies of the exchange, before it and behind it. One that
// an exception stops still meets the others, who wait for it.
template <SharedExchange Exchange, class Interior>
void overlap_shared(int worker, WorkStealing& loop, Exchange& exchange, Interior& interior) {
  exchange.start_worker(worker);
  try {
    worker == 0 ? run_beside(loop, exchange, interior) : loop.run(worker, interior);
  } catch (...) {
    try {
      exchange.wait_worker(worker);
    } catch (...) {  // what stopped the loop comes first
    }
    throw;
  }
  exchange.wait_worker(worker);
}

// The part of parallel_overlap between computing the faces and applying what was received, for
// programs with threads of their own: each of their workers calls it.
//
//   #pragma omp parallel
//   {
//     const int worker = omp_get_thread_num();
//     ... compute faces to send ...
//     #pragma omp barrier
//     ropewalk::overlap_worker(worker, loop, halo, interior);
//     #pragma omp barrier
//     ... apply received faces ...
//   }
template <class Exchange, class Interior>
void overlap_worker(int worker, WorkStealing& loop, Exchange&& exchange, Interior&& interior) {
  using E = std::remove_reference_t<Exchange>;
  const int communicating = loop.communicating_workers();
  const bool dedicated = communicating > 0 && communicating < loop.workers();
  if constexpr (SharedExchange<E>) {
    if (!dedicated && loop.workers() > 1 && exchange.workers() == loop.workers()) {
      return overlap_shared(worker, loop, exchange, interior);
    }
  }
  if constexpr (PolledExchange<E>) {
    if (!dedicated && worker == 0) {
      exchange.start();
      run_beside(loop, exchange, interior);
      exchange.wait();
      return;
    }
    if (dedicated && worker < communicating) exchange_share(worker, communicating, exchange);
  } else {
    if (worker < (communicating > 0 ? communicating : 1)) exchange(worker);
  }
  loop.run(worker, interior);
}

// The loop of Meadows et al. 2018. First all workers call faces(worker), which computes what is
// sent. Then the communicating workers exchange it, each its lanes, while the others compute the
// interior, by interior(begin, end) over the iterations of `loop`; when its messages are done, a
// communicating worker steals iterations. After a barrier all workers call boundary(worker), which
// applies what was received. faces and boundary share out their work themselves.
//
// `exchange` is a Halo or a MessagePlan, or a function that each communicating worker calls as
// exchange(worker) and that returns when its messages are done. Where no worker communicates, or
// all do (as when there is only one), worker 0 starts the exchange, makes progress with it between
// its blocks, and waits for it when the interior is done. A Halo that was made for all workers, or
// for the communicating ones, has its copies shared by them.
//
// An exception ends the loop on all workers, and is rethrown. An exchange that was started must
// then be waited for before the next one.
template <class Faces, class Exchange, class Interior, class Boundary>
void parallel_overlap(ThreadTeam& team, WorkStealing& loop, Faces&& faces, Exchange&& exchange,
                      Interior&& interior, Boundary&& boundary) {
  if (team.size() != loop.workers()) {
    throw Error(ErrorCode::argument, "loop: made for " + std::to_string(loop.workers()) +
                                         " workers, expected the " + std::to_string(team.size()) +
                                         " of the team; pass team.size() when it is made");
  }
  try {
    team.run([&](int worker) {
      faces(worker);
      team.barrier();
      overlap_worker(worker, loop, exchange, interior);
      team.barrier();
      boundary(worker);
    });
  } catch (...) {
    loop.reset();
    throw;
  }
}

// Does the same for faces that are computed already.
template <class Exchange, class Interior, class Boundary>
void parallel_overlap(ThreadTeam& team, WorkStealing& loop, Exchange&& exchange,
                      Interior&& interior, Boundary&& boundary) {
  parallel_overlap(
      team, loop, [](int) {}, exchange, interior, boundary);
}

}  // namespace ropewalk
