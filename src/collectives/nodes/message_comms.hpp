// The communicators that messages between nodes travel on: one of all ranks, one of the leaders of
// each slice, and one of each further lane. They are ropewalk's own, split from the program's.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/nodes/layout.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk::collectives::nodes {

// MPI frees them when MPI_Finalize begins, if the hierarchy has not ended before: their record is
// the value of an attribute of MPI_COMM_SELF.
class MessageComms {
 public:
  // Takes over `all`, a communicator of all ranks.
  explicit MessageComms(mpi::Comm all);
  // Waits for nobody: MPI_Comm_free of such communicators is local in the MPIs there are, so ranks
  // may come here in any order. A child of fork has no MPI to free anything of.
  ~MessageComms();
  MessageComms(const MessageComms&) = delete;
  MessageComms& operator=(const MessageComms&) = delete;

  // MPIs have few communicators, MPICH 2048: a process takes no more of them than this.
  static constexpr int most_taken = 128;
  static bool may_take(int more) noexcept;  // this process

  // The ranks are numbered as in the program's communicator. Errors are returned.
  mpi::Comm all() const noexcept { return record_->all; }
  // Returns the communicator of the leaders of a slice, one from each node, in the order of nodes
  // (pipeline.cc); null where this rank is none of them.
  mpi::Comm leaders(int slice) const { return record_->leaders[static_cast<std::size_t>(slice)]; }
  bool has_leaders() const noexcept { return !record_->leaders.empty(); }
  // Returns the communicator of a lane of this rank and the same lane of all others; lane 0 is the
  // caller's.
  mpi::Comm lane(int number) const {
    return number == 0 ? all() : record_->lanes[static_cast<std::size_t>(number) - 1];
  }
  // From now on settle(object) runs when MPI_Finalize begins, before the communicators are freed,
  // and may abandon() them. Null: nothing runs.
  void settle_with(void (*settle)(void*) noexcept, void* object) noexcept {
    record_->settle = settle;
    record_->settler = object;
  }
  int lanes() const noexcept { return 1 + static_cast<int>(record_->lanes.size()); }

  // Collective. Where MPI has too few communicators left, nothing is made, on any rank.
  void split_leaders(const NodeLayout&, int slices);
  void split_lanes(int lanes, int rank);

  // The call of some rank has failed, or not all ranks have refused it: messages may lie unread for
  // ever, and a later user of such a communicator would receive them as its own. So MPI keeps all
  // of these communicators to its end.
  void abandon() noexcept { record_->abandoned = true; }
  bool abandoned() const noexcept { return record_->abandoned; }
  bool ended() const noexcept { return record_->ended; }  // MPI_Finalize has begun
  bool is_here() const noexcept;                          // false in a child of fork

 private:
  struct Record {
    mpi::Comm all;
    std::vector<mpi::Comm> leaders;
    std::vector<mpi::Comm> lanes;  // from the second on
    int process;
    int taken = 1;  // of MPI's communicators
    bool ended = false;
    bool abandoned = false;
    bool orphaned = false;  // nobody but the attribute has it any more
    void (*settle)(void*) noexcept = nullptr;
    void* settler = nullptr;
  };
  static void release(void* record) noexcept;
  bool may_all_take(int more) const;
  void count_taken(int more) noexcept;

  Record* record_;
  int keyval_;
};

}  // namespace ropewalk::collectives::nodes
