// The loop that computes while lanes communicate: work stealing, a team of threads, and both joined
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

// A loop whose iterations are dealt out to workers beforehand, in equal runs, and that a worker
// without any goes on with where most is left: it takes half of the longest rest, from its end, of
// a worker on its own NUMA node if there is one with any left. Communicating workers, which are the
// first ones, start with nothing and join in when they have done their messages; where all workers
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
// Each iteration runs once a loop. All workers must take part in each loop, each until it is given
// an empty range, and a barrier of theirs must lie between two loops; then nothing has to be set up
// for the next one. No lock, no allocation; a block costs a compare-exchange (some 10 ns), and a
// steal a look at each worker's line.
class RW_EXPORT WorkStealing {
 public:
  // `block` iterations are handed out at a time; 0: about 256 blocks a worker. Error(argument) for
  // no workers, more communicating workers than workers, or 2^32 blocks and more.
  WorkStealing(std::size_t iterations, int workers, int communicating_workers = 0,
               std::size_t block = 0);
  WorkStealing(WorkStealing&&) noexcept;
  WorkStealing& operator=(WorkStealing&&) noexcept;
  ~WorkStealing();

  std::size_t iterations() const noexcept;
  int workers() const noexcept;
  int communicating_workers() const noexcept;
  std::size_t block() const noexcept;

  // What this worker runs next: up to block() iterations. Empty: nothing is left for it in this
  // loop, and its next call belongs to the next loop. Error(argument) for a worker that is not
  // there, and where another worker took no part in the last loop.
  IterationRange next(int worker);

  // body(begin, end) for all that this worker is given.
  template <class Body>
  void run(int worker, Body&& body) {
    for (IterationRange range = next(worker); !range.empty(); range = next(worker)) {
      body(range.begin, range.end);
    }
  }

  // Begins anew after a loop that an exception has cut short, or for another number of iterations
  // (block 0: chosen again). By one thread while no worker is in the loop.
  void reset();
  void reset(std::size_t iterations, std::size_t block = 0);

  // Blocks that a worker has run in all loops; exact when it is in none.
  struct Counts {
    std::uint64_t own = 0;     // dealt to it beforehand, or shown by it after a steal
    std::uint64_t stolen = 0;  // taken from others, one a steal
  };
  Counts counts(int worker) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct ThreadTeamOptions {
  int threads = 0;  // the caller's included; 0: one a core that this rank has for itself
  bool pin = true;  // each but the caller's to a core, where there is one for each
};

// Threads that run loops together. They stay between runs: spinning at first, asleep after about a
// millisecond; at once asleep or out of the way where threads outnumber cores.
//
// One thread uses a team, the one that made it, and is worker 0.
class RW_EXPORT ThreadTeam {
 public:
  static constexpr int max_threads = 4096;

  // Local: as if this process had the cores of its affinity mask for itself. Not pinned where the
  // job has further ranks, which may be given the same cores.
  explicit ThreadTeam(const ThreadTeamOptions& = {});
  // Collective: ranks of a node that may use the same cores share them out. Not pinned where the
  // job has ranks that are not in the communicator.
  explicit ThreadTeam(Communicator, const ThreadTeamOptions& = {});
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const noexcept;
  bool crowded() const noexcept;  // threads outnumber cores

  // task(worker) on each worker at once; returns when all are done. Rethrows the first exception;
  // workers that wait in barrier() for the one that threw end their task there, too.
  template <class Task>
  void run(Task&& task) {
    using Type = std::remove_reference_t<Task>;
    run_erased([](void* object, int worker) { (*static_cast<Type*>(object))(worker); },
               const_cast<void*>(static_cast<const void*>(std::addressof(task))));
  }
  // All workers call it in a task. What each wrote before it, all may read after it.
  void barrier();

 private:
  struct State;
  void run_erased(void (*task)(void*, int), void* object);
  std::unique_ptr<State> state_;
};

// ---- an exchange behind a loop

// What one thread starts, polls and waits for: Halo, MessagePlan.
template <class E>
concept PolledExchange = requires(E& exchange) {
  exchange.start();
  { exchange.test() } -> std::convertible_to<bool>;
  exchange.wait();
};
// What several threads drive, each some of its lanes: Halo, MessagePlan.
template <class E>
concept LaneExchange = requires(E& exchange, int lane) {
  exchange.exchange_lane(lane);
  { exchange.lanes() } -> std::convertible_to<int>;
};

// Calls work() again and again while an exchange that was started is under way, and looks after its
// messages between the calls, at most for 6 % of the time. Ends when all is there, or when work()
// returns false because nothing is left to do. True where all is there; wait() is still to be
// called.
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

// The part of one of several communicating workers in an exchange: worker w of n drives the lanes
// w, w + n, ... of it. An exchange without lanes is worker 0's alone. Returns when that part is
// done.
template <class Exchange>
void exchange_share(int worker, int communicating, Exchange& exchange) {
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

// What one worker does between the barrier behind the faces and the join of the interior: to be
// called by all workers of the caller's own threads. See parallel_overlap.
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
  if constexpr (PolledExchange<E>) {
    if (!dedicated && worker == 0) {
      exchange.start();
      const bool done = work_beside(exchange, [&] {
        const IterationRange range = loop.next(0);
        if (range.empty()) return false;
        interior(range.begin, range.end);
        return true;
      });
      if (done) loop.run(0, interior);
      exchange.wait();
      return;
    }
    if (dedicated && worker < communicating) exchange_share(worker, communicating, exchange);
  } else {
    if (worker < (communicating > 0 ? communicating : 1)) exchange(worker);
  }
  loop.run(worker, interior);
}

// The loop of Meadows et al. 2018: faces(worker) computes what is sent; then communicating workers
// exchange it, each its lanes, and fall through to steal, while the others compute the interior
// from the start, interior(begin, end) over iterations of `loop`; the interior is joined, and
// boundary(worker) applies what was received. faces and boundary are called by all workers and
// share out their work themselves.
//
// `exchange` is a Halo or MessagePlan, or a call exchange(worker) for each communicating worker
// that returns when its messages are done. Where no worker communicates, or all do (one that is
// alone, above all), worker 0 starts the exchange, looks after it between its blocks, and waits for
// it when the interior is done.
//
// An exception ends the loop on all workers and comes out; an exchange that was started must then
// be waited for before the next.
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

// The same for faces that are there already.
template <class Exchange, class Interior, class Boundary>
void parallel_overlap(ThreadTeam& team, WorkStealing& loop, Exchange&& exchange,
                      Interior&& interior, Boundary&& boundary) {
  parallel_overlap(
      team, loop, [](int) {}, exchange, interior, boundary);
}

}  // namespace ropewalk
