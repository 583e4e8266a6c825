// The ladder of waiting: a thread looks at full speed first, then gives its core away between two
// looks, then sleeps between them. Where something else keeps the core busy, it sleeps at once.
//
// All waits of ropewalk climb this one ladder. They differ in their row of the table below, and in
// what the caller does between two looks: it polls MPI, checks whether its peers live, and knows
// how a sleeper is woken.
//
//   os::Waiting wait(os::wait_for_messages);
//   while (!wait.poll([&] { return mpi::test(request); })) {
//     if (wait.check_due()) liveness.look();
//     wait.pause();
//   }
#pragma once

#include <cstdint>

#include "os/clock.hpp"
#include "os/idle_clock.hpp"
#include "os/relax.hpp"

namespace ropewalk::os {

struct WaitPolicy {
  unsigned spins;                // looks at full speed, before the first yield
  unsigned looks_per_yield = 1;  // then, while the wait is awake
  unsigned looks_awake = 0;      // so many looks behind the spins come before the first sleep, and
  std::int64_t awake_ns;         // as many as fit this time; more where polls find work (IdleClock)
  std::int64_t longest_nap_ns;
  // Every event that is waited for wakes the sleeper. So it sleeps for the longest nap at once; the
  // nap ends only as a safeguard.
  bool is_woken = false;
  // The polls of the wait measure the time; otherwise the wait reads the clock itself, now and
  // then.
  bool polls = true;
  // Where something else keeps the core busy, the wait sleeps instead of yielding (SharedCore).
  bool leaves_shared_core = false;
};

// ---- the table. A yield costs 0.3 us where no other thread wants the core, and a time slice of
// some milliseconds where one does. A sleep costs 10 to 20 us of a core in a virtual machine.

inline constexpr std::int64_t stays_awake = INT64_MAX / 2;  // never sleeps

// Ranks of a node wait so for flags in shared memory. With a core for each rank the spins take 20
// us, longer than any healthy call of a small message; without, next to nothing: the peer needs
// this very core. A yield costs as much as five polls of MPI. A wake-up may be missed
// (Waits::wake_sleepers), and MPI wants a look now and then: a nap of 1 ms costs 2 % of a core.
inline constexpr WaitPolicy wait_for_ranks{.spins = 2000,
                                           .looks_per_yield = 4,
                                           .awake_ns = IdleClock::awake_at_first_ns,
                                           .longest_nap_ns = 1'000'000,
                                           .leaves_shared_core = true};
inline constexpr WaitPolicy wait_for_ranks_crowded{
    .spins = 20, .awake_ns = IdleClock::awake_at_first_ns, .longest_nap_ns = 1'000'000};
// The same where other threads of the rank call MPI. One may wait so that MPI makes progress, as
// some programs have a thread in a receive of a message that never comes.
inline constexpr WaitPolicy wait_beside_threads{.spins = 2000,
                                                .looks_per_yield = 4,
                                                .awake_ns = IdleClock::awake_at_first_ns,
                                                .longest_nap_ns = 50'000,
                                                .leaves_shared_core = true};
inline constexpr WaitPolicy wait_beside_threads_crowded{
    .spins = 20, .awake_ns = IdleClock::awake_at_first_ns, .longest_nap_ns = 50'000};
// A thread beside the program's own waits so for flags where there is no core for both: it makes a
// call that was started, while the program computes. What yields would see a time slice later, it
// is woken for at once: the kernel prefers who has slept. The naps are short at first.
inline constexpr WaitPolicy wait_for_ranks_beside{
    .spins = wait_for_ranks.spins, .awake_ns = 0, .longest_nap_ns = 1'000'000};

// Ranks of several nodes wait so for each other's messages. They never sleep: over TCP nothing
// moves while nobody polls. The spins take 20 us, a round trip between two nodes.
inline constexpr WaitPolicy wait_for_nodes{
    .spins = 200, .awake_ns = stays_awake, .longest_nap_ns = 0, .polls = false};
inline constexpr WaitPolicy wait_for_nodes_crowded{
    .spins = 2, .awake_ns = stays_awake, .longest_nap_ns = 0, .polls = false};

// A thread that polls its own messages waits so. The spins are a few microseconds of MPI_Test, less
// than a switch of threads. A wait of 10 ms may sleep: that is well above the 2 ms that 25 MB take
// at 100 Gbit/s. After such a wait a delay of 0.5 ms does not matter.
inline constexpr WaitPolicy wait_for_messages{
    .spins = 16, .awake_ns = 10'000'000, .longest_nap_ns = 500'000};

// The owner of a plan waits so for the comm threads that drive it. The spins take some 2 us. Where
// threads outnumber cores, a comm thread wants the core of its owner.
inline constexpr WaitPolicy wait_for_lanes{
    .spins = 64, .awake_ns = 10'000'000, .longest_nap_ns = 500'000};
inline constexpr WaitPolicy wait_for_lanes_crowded{
    .spins = 64, .looks_awake = 8, .awake_ns = 0, .longest_nap_ns = 500'000};

// A caller waits so for the thread that reduces its buckets, which may want this very core. The
// spins take some 20 us.
inline constexpr WaitPolicy wait_for_reduction{
    .spins = 1000, .awake_ns = 300'000, .longest_nap_ns = 500'000};

// Threads that work on one loop wait so for each other. The spins take some 50 us, which is what
// lies between two loops of a solver on one rank. A wake-up costs 5 us, and 50 us in a virtual
// machine, so it is worth spinning for some time, but not holding the core for long.
inline constexpr WaitPolicy wait_for_threads{.spins = 4096,
                                             .awake_ns = 1'000'000,
                                             .longest_nap_ns = 1'000'000'000,
                                             .is_woken = true,
                                             .polls = false};
inline constexpr WaitPolicy wait_for_threads_crowded{.spins = 16,
                                                     .looks_awake = 32,
                                                     .awake_ns = 0,
                                                     .longest_nap_ns = 1'000'000'000,
                                                     .is_woken = true,
                                                     .polls = false};

// A comm thread that has nothing to do waits so: it yields for some 20 us, as long as a wake-up
// takes.
inline constexpr WaitPolicy wait_for_work{.spins = 0,
                                          .looks_awake = 64,
                                          .awake_ns = 0,
                                          .longest_nap_ns = 1'000'000'000,
                                          .is_woken = true,
                                          .polls = false};
// A thread whose work comes seldom waits so.
inline constexpr WaitPolicy wait_asleep{
    .spins = 0, .awake_ns = 0, .longest_nap_ns = 1'000'000'000, .is_woken = true, .polls = false};

// How long a wait for messages of so many bytes stays awake: as long as they take at 100 MB/s, less
// than 1 Gbit/s. Over TCP nothing moves while all ranks sleep, and the wire is idle.
constexpr std::int64_t awake_ns_for(std::size_t bytes) noexcept {
  return wait_for_messages.awake_ns + static_cast<std::int64_t>(bytes) * 10;
}

// One wait. Reads no clock while it spins.
class Waiting {
 public:
  explicit Waiting(const WaitPolicy& policy) noexcept : Waiting(policy, policy.awake_ns) {}
  Waiting(const WaitPolicy& policy, std::int64_t awake_ns) noexcept : policy_(&policy) {
    restart(awake_ns);
  }
  // A wait whose caller has spun for itself.
  static Waiting after_spins(const WaitPolicy& policy) noexcept {
    Waiting wait(policy);
    wait.looks_ = policy.spins;
    wait.begin_yields();
    return wait;
  }
  // What was waited for has come, and the wait for the next begins.
  void restart() noexcept { restart(policy_->awake_ns); }
  void restart(std::int64_t awake_ns) noexcept;

  // Whether the wait is on its first rung still.
  bool spins() const noexcept { return looks_ < policy_->spins; }
  // Calls poll(), which moves messages, and returns what it returns. Its time tells whether there
  // were any: then the wait stays awake.
  template <class Poll>
  auto poll(Poll&& poll) {
    if (spins()) return poll();
    clock_.poll_begins();
    const PollEnd end{clock_};
    return poll();
  }

  // Whether the caller should look whether its peers live: once every 5 ms.
  bool check_due() noexcept;
  // Whether the caller should check anything besides what it waits for: after the spins at every
  // 64th look, and from the first sleep on at every look.
  bool look_due() const noexcept {
    return !spins() && (slept_ || looks_ % looks_per_look_beside == looks_per_look_beside - 1);
  }
  // The wait does not sleep before the next look.
  void stay_awake() noexcept { awake_until_look_ = looks_ + 2; }

  // Between two looks. sleep(longest_ns) sleeps for so long, or until it is woken.
  template <class Sleep>
  void pause(Sleep&& sleep) {
    if (spins()) {
      if (++looks_ == policy_->spins) begin_yields();
      return relax();
    }
    ++looks_;
    if (!policy_->polls && looks_ % looks_per_clock == 0) clock_.pass(steady_ns());
    const bool yields = looks_ % policy_->looks_per_yield == 0;
    if (!awake() || (yields && leaves_core())) {
      slept_ = true;
      sleep(policy_->is_woken ? policy_->longest_nap_ns : clock_.nap_ns());
    } else if (yields) {
      yield();
    }
  }
  void pause() { pause(&sleep_for); }

 private:
  struct PollEnd {
    IdleClock& clock;
    ~PollEnd() { clock.poll_ends(); }
  };
  static constexpr unsigned looks_per_look_beside = 64;
  static constexpr unsigned looks_per_clock = 8;
  static constexpr std::int64_t check_ns = 5'000'000;

  bool awake() const noexcept { return looks_ < awake_until_look_ || clock_.awake(); }
  bool leaves_core() const noexcept {
    return policy_->leaves_shared_core && looks_ >= awake_until_look_ && core_is_shared();
  }
  bool core_is_shared() const noexcept;
  void begin_yields() noexcept;
  void yield() noexcept;
  static void sleep_for(std::int64_t ns) noexcept;

  const WaitPolicy* policy_;
  std::int64_t awake_ns_ = 0;
  unsigned looks_ = 0;
  unsigned awake_until_look_ = 0;
  bool slept_ = false;
  // This is the time since the spins ended.
  std::int64_t checked_ns_ = 0;
  IdleClock clock_{0, 0, 0};
};

}  // namespace ropewalk::os
