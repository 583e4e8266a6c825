// The hierarchy under a communicator whose ranks are on several nodes: where each rank is, the team
// of this node's ranks, and a communicator of ropewalk's own for messages between nodes.
//
// What can go wrong on one rank alone reaches all: it sends every other rank a *notice*, and
// whoever waits for a message of another node, or for a flag of its own, finds it and throws the
// same.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/engine.hpp"
#include "collectives/nodes/lanes.hpp"
#include "collectives/nodes/layout.hpp"
#include "mpi/attributes.hpp"
#include "mpi/mpi.hpp"
#include "mpi/waiter.hpp"
#include "node/liveness.hpp"

namespace ropewalk::collectives::nodes {

// Requests under way. Where an exception leaves their scope, receives are withdrawn: nothing is
// written to buffers that may be gone. Sends are left to MPI.
struct Requests {
  std::vector<mpi::Request> receives;
  std::vector<mpi::Request> sends;

  Requests() = default;
  ~Requests() {
    for (mpi::Request& request : receives) mpi::withdraw(request);
  }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  bool test() { return mpi::test_all(receives) && mpi::test_all(sends); }
  // The room first: what nobody keeps cannot be withdrawn.
  template <class... Arguments>
  void receive(Arguments... arguments) {
    receives.push_back(mpi::request_null());
    receives.back() = mpi::ireceive(arguments...);
  }
};

// Tags on the communicator for messages between nodes: a range for each that uses it. Messages of
// one pair of ranks and one tag meet in order, and every rank makes the same calls in the same
// order, so a tag may be used again within a call wherever both sides post in the same order. Calls
// take the tags of their range in turn: a rank that has refused its arguments, and calls again
// before the others know, must not send them the data of its next call for those of this one.
namespace tag {
constexpr int notice = 1;
constexpr int alive = 16;         // 16 to 31: whether nodes live
constexpr int small = 32;         // 32 to 63: reductions through leaders
constexpr int pieces = 0x1000;    // to 0x1fff: pieces of large reductions
constexpr int movement = 0x2000;  // to 0x2fff: broadcast, allgather and all that only moves bytes
constexpr int gradient = 0x3000;  // to 0x3fff
}  // namespace tag

struct Header;  // nodes/traffic.hpp

// What the environment asks for: the same on all ranks, which have compared it.
struct Wishes {
  int allreduce = -1;  // an Algorithm (nodes/exchange.hpp); -1: none
  bool all_sizes = false;
};

class Nodes final : private node::Watcher {
 public:
  // Collective over `comm`. Null on every rank where a node's ranks cannot be a team; `reason` then
  // says why. `attach_reason`: why this node does not attach private memory.
  // `threads`: of this rank, for large reductions; 0: as ROPEWALK_REDUCTION_THREADS says.
  static std::unique_ptr<Nodes> create(mpi::Comm comm, Layout layout, int threads,
                                       std::string& reason, std::string& attach_reason);
  // Waits for nobody: MPI_Comm_free of what is our own is local in the MPIs there are, so ranks may
  // come here in any order. After MPI_Finalize has begun nothing is left to free.
  ~Nodes() override;
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  const Layout& layout() const noexcept { return layout_; }
  // Of this node's ranks, by their place; a team of one rank where the node has one: its algorithms
  // want two or more.
  Engine& engine() noexcept { return *engine_; }
  bool alone() const noexcept { return engine_->size() == 1; }  // on this node
  // From now on waiting ranks give their cores away at once. On all ranks of a node or on none.
  void share_cores();
  // For messages between nodes: the ranks are those of the communicator. Its errors are returned.
  mpi::Comm messages() const noexcept { return shared_->messages; }
  // Of the owners of a slice, one a node in their order (nodes/pipeline.cc); null where this rank
  // is none of them.
  // make_owners() is collective, and makes them at the first call. False on all ranks where MPI has
  // no communicators for them. Throws where another rank makes another call than `header` says.
  bool make_owners(const Header& header);
  mpi::Comm owners(int slice) const { return shared_->owners[static_cast<std::size_t>(slice)]; }
  // The threads that share this rank's large reductions; null: the caller alone. The first call is
  // collective: ranks on the same cores share these out, and all agree on how many lanes
  // communicate.
  Lanes* make_lanes(const Header& header);
  int reduction_threads() const noexcept { return lanes_ != nullptr ? lanes_->threads() : 1; }
  int communicating_lanes() const noexcept { return 1 + static_cast<int>(shared_->lanes.size()); }
  // For messages of a lane that communicates.
  mpi::Comm lane(int number) const {
    return number == 0 ? messages() : shared_->lanes[static_cast<std::size_t>(number) - 1];
  }
  // What ROPEWALK_ALLREDUCE asks for, the same on all ranks (nodes/exchange.hpp); -1 for nothing.
  int wish() const noexcept { return wishes_.allreduce; }
  bool serves_all_sizes() const noexcept { return wishes_.all_sizes; }  // ROPEWALK_MOVEMENTS=nodes
  // Of the ring, in bytes; the same on all ranks.
  std::size_t longest_message() const noexcept { return longest_message_; }
  Path path = Path::none;  // of the last call
  bool crowded = false;    // some ranks share cores, on this node or another: all ranks know it

  // ---- calls

  // Every call that uses the team or the messages runs in here: run([&] { ... }). What it throws is
  // told to all ranks, and no later call is made.
  template <class Call>
  void run(Call&& call) {
    begin();
    try {
      if (calls_ % calls_per_look == 0) look();
      call();
    } catch (...) {
      fail();
    }
    in_call_ = false;
  }
  // A collective of MPI's own on all ranks: call(communicator, waiter), see mpi/waiter.hpp. Never
  // on the program's communicator, which a nonblocking call may outlive. Never a blocking call,
  // which notices nothing: neither the dead nor, where nobody is watched, a rank that has failed.
  template <class Call>
  void run_by_mpi(const Call& call) {
    run([&] {
      InCall waiter(*this);
      call(shared_->messages, &waiter);
    });
  }
  std::uint64_t calls() const noexcept { return calls_; }  // begun or refused by this rank
  // For a rank that refuses its arguments before the call: the others get an error, unless they
  // refuse theirs as well.
  void refuse(const char* message) noexcept;
  // The same of all calls to come, by a rank that an exception takes away.
  void leave_for_good() noexcept;

  // ---- waiting for messages of other nodes: all waits go through here

  // Returns when ready() is true. It is called often and must progress MPI by what it tests; it may
  // do work of its own. Spins, then gives the core away between looks, and on the way finds
  // notices, dead ranks of this node, and dead ranks of others: they become exceptions.
  template <class Ready>
  void wait_until(Ready ready) {
    for (int spin = 0; spin < spins_; ++spin) {
      if (ready()) return;
    }
    wait_slowly([](void* test) { return (*static_cast<Ready*>(test))(); }, &ready);
  }
  void wait(mpi::Request& request) {
    wait_until([&] { return mpi::test(request); });
  }
  // Of a collective: where it throws, the request is MPI's, as are its buffers.
  void wait_or_leave(mpi::Request& request);
  void wait(Requests& requests) {
    wait_until([&] { return requests.test(); });
  }
  // Whether ranks that die are noticed wherever they are; null: only those of this node are, and
  // liveness_reason() says why.
  node::Liveness* liveness() noexcept { return liveness_.get(); }
  const std::string& liveness_reason() const noexcept { return liveness_reason_; }

  // ---- tags of the call under way

  int small_tag() const noexcept { return tag::small + in_turn(32); }
  int movement_tag() const noexcept { return tag::movement + in_turn(0x1000); }
  int pieces_tag() const noexcept { return tag::pieces + 0x400 * in_turn(4); }  // of 16 slices

  // ---- small messages, blocking

  void send(const void* data, std::size_t bytes, int destination, int with_tag);
  void receive(void* data, std::size_t bytes, int source, int with_tag);
  // Both at once.
  void exchange(const void* sent, std::size_t sent_bytes, int destination, void* received,
                std::size_t received_bytes, int source, int with_tag);

 private:
  // A rank whose calls never wait, since it only sends to a root, looks around all the same.
  static constexpr std::uint64_t calls_per_look = 64;

  int in_turn(std::uint64_t tags) const noexcept { return static_cast<int>(calls_ % tags); }

  class InCall final : public mpi::Waiter {
   public:
    explicit InCall(Nodes& nodes) : nodes_(nodes) {}
    void wait(mpi::Request& request) override { nodes_.wait_or_leave(request); }

   private:
    Nodes& nodes_;
  };
  // What MPI frees at the start of MPI_Finalize, if the hierarchy has not ended before: an
  // attribute of MPI_COMM_SELF, whose value it is.
  struct Shared {
    mpi::Comm messages;
    std::vector<mpi::Comm> owners;
    std::vector<mpi::Comm> lanes;  // from the second on
    mpi::Keyval keyval;
    int process;  // a child of fork has no MPI to free anything of
    bool ended = false;
    int held = 1;  // of MPI's communicators, taken together
    // Notices may lie there unread: who got the same communicator again would take them for its
    // own.
    bool keeps_messages = false;
  };
  struct Notice {
    std::uint64_t call;  // number of the call that was refused; 0: no call can be made any more
    std::int64_t code;   // ErrorCode
    std::int64_t last;   // 1: nor will that rank make any later call
    char text[488];
  };
  static_assert(sizeof(Notice) == 512);  // below every MPI's eager limit

  explicit Nodes(Layout layout) : layout_(std::move(layout)) {}
  static void release(void* shared) noexcept;
  void adopt(mpi::Comm messages);
  void meet_all(const Header& header);
  bool may_hold(int more) const;
  void split_owners();
  void split_lanes(int communicating);
  void begin();
  [[noreturn]] void fail();
  [[noreturn]] void explain();
  void look() override;
  void lost(int place) override;
  void wait_slowly(bool (*ready)(void*), void* test);
  void take_notices();
  void heed(const Notice& notice, int source);
  [[noreturn]] void throw_broken() const;
  void refuse_next(ErrorCode code, bool last, const char* text) noexcept;
  void tell(const Notice& notice, int rank) noexcept;
  void tell_all(std::uint64_t call, ErrorCode code, bool last, const char* text) noexcept;

  Layout layout_;
  std::unique_ptr<Engine> engine_;
  Shared* shared_ = nullptr;
  Wishes wishes_;
  std::size_t longest_message_ = 0;
  int threads_ = 0;  // as asked for; 0: those that this rank has cores for
  bool asked_for_owners_ = false;
  bool asked_for_lanes_ = false;
  std::unique_ptr<Lanes> lanes_;
  int spins_ = 1;
  std::unique_ptr<node::Liveness> liveness_;
  std::string liveness_reason_;
  std::mutex looking_;  // one thread at a time
  std::uint64_t calls_ = 0;
  bool in_call_ = false;
  std::uint64_t refused_ = 0;                     // the last call that this rank has refused
  std::vector<std::pair<Notice, int>> refusals_;  // of calls to come, and who refused them
  bool broken_ = false;
  Notice why_{};
  std::unique_ptr<Notice> spare_notice_ = std::make_unique<Notice>();  // where memory is out
};

}  // namespace ropewalk::collectives::nodes
