// An MPI communicator of the caller, as it is passed to ropewalk.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

#include "ropewalk/export.hpp"

namespace ropewalk {

// A handle of an MPI communicator. It owns nothing; the MPI communicator must outlive whatever is
// made from it.
//   ropewalk::Communicator world(MPI_COMM_WORLD);
class RW_EXPORT Communicator {
 public:
  template <class MpiComm>
  explicit Communicator(MpiComm comm) noexcept {
    if constexpr (std::is_pointer_v<MpiComm>) {
      handle_ = reinterpret_cast<std::uintptr_t>(comm);
    } else if constexpr (sizeof(MpiComm) == sizeof(int)) {
      handle_ = static_cast<std::uint32_t>(comm);  // MPICH's handles are ints
    } else {
      handle_ = static_cast<std::uintptr_t>(comm);
    }
  }
  static Communicator world();  // MPI_COMM_WORLD of the loaded MPI; Error(mpi) where there is none

  std::uintptr_t handle() const noexcept { return handle_; }
  int rank() const;
  int size() const;

 private:
  std::uintptr_t handle_;
};

// An MPI communicator of some of the ranks, made by MPI_Comm_split and freed with this object.
// Collective over `parent`; ranks of one color share a communicator, ordered by key and then by
// their rank in the parent. A rank without a color joins none. What is made from communicator()
// must be gone before this object is. Throws Error(mpi) where MPI has no communicators left.
class RW_EXPORT SplitCommunicator {
 public:
  SplitCommunicator(Communicator parent, std::optional<int> color, int key);
  ~SplitCommunicator();
  SplitCommunicator(const SplitCommunicator&) = delete;
  SplitCommunicator& operator=(const SplitCommunicator&) = delete;

  bool member() const noexcept { return member_; }
  Communicator communicator() const noexcept { return split_; }

 private:
  Communicator split_;
  bool member_ = false;
};

}  // namespace ropewalk
