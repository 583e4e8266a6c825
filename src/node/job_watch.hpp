// The watch: one thread a process that knows which processes of the job have ended or fallen
// silent, and tells the others.
//
// It sleeps in poll. A process that ends closes its connections: its kernel tells, at once. So the
// watch of a healthy job does nothing. Only while somebody waits for long do the kernels ask each
// other, every few seconds, whether they are there: a process that computes or is stopped by a
// debugger does not answer, but its kernel does. What a watch learns it passes on over all its
// links, so everybody learns it who is connected at all; ranks need not know whom they wait for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node/link.hpp"

namespace ropewalk::node {

class JobWatch {
 public:
  // Of this process, made at the first call; it stays to the end. Null where it cannot be, and in a
  // child of fork; `reason` says why. All of its calls name the same `timeout_s`.
  static JobWatch* of_process(int timeout_s, std::string& reason);

  const Contact& own() const noexcept { return own_; }

  // Links to those processes, unless there are already. Returns when each is proved, or when one
  // cannot be: then it says why, else it returns nothing. One of the two sides initiates.
  struct Neighbour {
    Contact contact;
    bool initiates;
  };
  std::string connect(std::span<const Neighbour>);

  // To be called by whoever waits, again and again; costs a reading of the clock.
  void waiting() noexcept;

  // Grows when there is something new to be found.
  std::uint32_t news() const noexcept { return news_.load(std::memory_order_acquire); }
  struct Broken {
    std::uint64_t communicator;
    ProcessId subject;
    std::uint32_t seconds;
  };
  struct Findings {
    std::vector<ProcessId> ended;   // for good
    std::vector<ProcessId> silent;  // for the time-out and longer
    std::optional<Broken> broken;   // what another rank has said of the communicator
  };
  Findings find(std::uint64_t communicator) const;

  // Everybody is to know that this rank has given the communicator up, or that it knows for certain
  // that a process has ended.
  void tell(const Broken&);
  void tell_ended(const ProcessId&);

  int timeout_s() const noexcept { return timeout_s_; }

  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

 private:
  explicit JobWatch(int timeout_s);
  void run() noexcept;
  bool start(std::string& reason);
  void loop();
  void wake() const noexcept;

  // All below with mutex_ held, by the thread alone.
  struct Ready;  // what poll is asked about
  std::vector<Ready> gather();
  int patience_ms(std::int64_t now) const;
  void handle(const Ready&, short events, std::int64_t now);
  void handle_attempt(Link&, Connection&, short events);
  void handle_proved(Link&, Connection&, std::int64_t now);
  void take_guests(std::int64_t now);
  bool handle_guest(Connection&, std::int64_t now);
  void prove(Link&, Connection& place, Connection&& connection);
  void revive(Link&, std::int64_t now);
  void begin_round(Link&, std::int64_t now);
  void end_round(Link&, std::int64_t now);
  static void note_failure(Link&, const os::Address&, int error);
  void drop_old_guests(std::int64_t now);
  void tick(std::int64_t now);
  void begin_asking(std::int64_t now);
  void end_asking();
  void listen_to(Link&, std::int64_t since_ns, std::int64_t counted_ns);
  void learn(const Frame&);
  void learn_ended(const ProcessId&);
  void learn_broken(const Broken&);
  void tell_all();
  bool tell_one(Connection&);
  Link* find_link(const ProcessId&);
  Link& link_to(const ProcessId&);
  bool is_ended(const ProcessId&) const;

  void close_all() noexcept;
  static void before_fork() noexcept;
  static void after_fork_in_parent() noexcept;
  static void after_fork_in_child() noexcept;

  const int timeout_s_;
  const int interval_s_;  // between two questions
  Contact own_;
  os::Descriptor listener_;
  os::Descriptor bell_;  // an eventfd: the thread has something to do

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // some link was proved, or cannot be
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Connection>> guests_;  // that have not said yet who they are
  std::vector<ProcessId> ended_;
  std::vector<Broken> broken_;
  std::int64_t last_tick_ns_ = 0;
  std::int64_t deaf_until_ns_ = 0;  // no connection can be accepted until then; 0: they can

  std::atomic<std::uint32_t> news_{0};
  // Of whoever waits in this process: threads may overwrite each other's, which does no harm.
  std::atomic<std::int64_t> wait_began_ns_{0};
  std::atomic<std::int64_t> last_look_ns_{0};
  std::atomic<bool> asking_{false};
};

}  // namespace ropewalk::node
