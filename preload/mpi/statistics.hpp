// ROPEWALK_STATS: how many calls were served and passed, and why, printed once for all ranks by
// MPI_Finalize.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "os/clock.hpp"
#include "reasons.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::preload {

enum class Function : std::uint8_t {
  barrier,
  bcast,
  reduce,
  allreduce,
  scan,
  exscan,
  reduce_scatter,
  reduce_scatter_block,
  allgather,
  allgatherv,
  gather,
  gatherv,
  scatter,
  scatterv,
  alltoall,
  alltoallv,
  alltoallw,
  neighbor_allgather,
  neighbor_allgatherv,
  neighbor_alltoall,
  neighbor_alltoallv,
  neighbor_alltoallw,
  ibcast,
  ireduce,
  iallreduce,
  ireduce_scatter_block,
  iallgather,
  ialltoall,
  ialltoallw,
  ineighbor_allgather,
  ineighbor_allgatherv,
  ineighbor_alltoall,
  ineighbor_alltoallv,
  ineighbor_alltoallw,
  barrier_init,
  bcast_init,
  reduce_init,
  allreduce_init,
  scan_init,
  exscan_init,
  reduce_scatter_init,
  reduce_scatter_block_init,
  allgather_init,
  allgatherv_init,
  gather_init,
  gatherv_init,
  scatter_init,
  scatterv_init,
  alltoall_init,
  alltoallv_init,
  alltoallw_init,
  neighbor_allgather_init,
  neighbor_allgatherv_init,
  neighbor_alltoall_init,
  neighbor_alltoallv_init,
  neighbor_alltoallw_init,
  send,
  isend,
  send_init,
  sendrecv,
  put,
  get,
  accumulate,
  get_accumulate,
  fetch_and_op,
  compare_and_swap,
  win_fence,
  win_lock,
  win_unlock,
  win_flush,
  win_post,
  win_start,
  win_complete,
  win_wait
};
inline constexpr int functions = 74;

enum class Statistics : std::uint8_t { off, on, compare };
extern Statistics statistics;  // set before the first call is served

// Reads ROPEWALK_STATS: 1 counts; `compare` has every 16th call that is served made by MPI as well.
void read_statistics_setting();
// Collective over MPI_COMM_WORLD: rank 0 prints to stderr.
void print_statistics() noexcept;

// A communicator over nodes has been made whose ranks on other nodes are not watched. The first
// reason is printed.
void note_unwatched(const std::string& reason) noexcept;

// Ranks of a communicator do not agree on a setting, or one is malformed. The first error is
// printed.
void note_refused(const char* error) noexcept;

// This process does not take messages through memory. The first reason is printed.
void note_promise(const std::string& reason) noexcept;

// A rank of MPI_COMM_WORLD has left a message in its sender's memory for so long that the program
// may hang. It is printed at once, where statistics are wanted, since such a program may never end.
void tell_untaken(int receiver, std::size_t bytes, std::int64_t seconds) noexcept;

void count_served(Function, Path, std::size_t bytes, std::int64_t ns) noexcept;
void count_passed(Function, Reason, std::size_t bytes, std::int64_t ns) noexcept;
void count_compared(Function, Path, std::int64_t served_ns, std::int64_t plain_ns) noexcept;

// One call under observation; costs a branch where nobody asked.
class Watch {
 public:
  Watch(Function function, std::size_t bytes) noexcept : bytes_(bytes), function_(function) {
    if (statistics != Statistics::off) [[unlikely]] {
      start_ns_ = os::steady_ns();
    }
  }
  void served(Path path) noexcept {
    if (statistics == Statistics::off) [[likely]] {
      return;
    }
    served_ns_ = os::steady_ns() - start_ns_;
    path_ = path;
    count_served(function_, path, bytes_, served_ns_);
  }
  void passed(Reason reason) noexcept {
    if (statistics == Statistics::off) [[likely]] {
      return;
    }
    count_passed(function_, reason, bytes_, os::steady_ns() - start_ns_);
  }
  bool compares(std::uint64_t call) const noexcept {
    return statistics == Statistics::compare && call % 16 == 0;
  }
  template <class Again>
  void compared(Again again) noexcept {
    const std::int64_t begin = os::steady_ns();
    if (again() < 0) return;
    count_compared(function_, path_, served_ns_, os::steady_ns() - begin);
  }

 private:
  std::int64_t start_ns_ = 0;
  std::int64_t served_ns_ = 0;
  std::size_t bytes_;
  Function function_;
  Path path_ = Path::none;
};

}  // namespace ropewalk::preload
