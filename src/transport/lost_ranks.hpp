// The ranks of an endpoint set that can no longer be waited for: those that have died, and those
// that an exception has taken through the end of their set, which send a notice. What is under way
// with one of them cannot be completed, and every rank gives up.
#pragma once

#include <atomic>
#include <memory>

#include "mpi/mpi.hpp"
#include "node/liveness.hpp"

namespace ropewalk::transport {

class LostRanks {
 public:
  // Collective over `parent`. Notices come over `lane`, which outlives this.
  void watch(mpi::Comm parent, mpi::Comm lane);

  // Throws Error(peer_dead) once a rank has died.
  void look();
  // This rank has died, as was seen here: throws Error(peer_dead), or returns where nobody tells
  // the others.
  void lost(int rank);
  // True once a rank has died. From any thread that has waited for long, as the next.
  bool any_dead() noexcept;
  // True once a rank has died, or has sent its notice.
  bool any() noexcept;
  // Whether any() has found a notice.
  bool any_left() const noexcept { return left_.load(std::memory_order_acquire) >= 0; }
  // Throws Error(peer_dead), or Error(mpi) after a notice, if any was found.
  void throw_found() const;
  // To be called with an error of MPI: throws an error that names the dead rank instead, if there
  // is one.
  void explain();

 private:
  void look_for_notices();

  std::unique_ptr<node::Liveness> liveness_;  // null where deaths are not noticed
  mpi::Comm lane_{};
  std::atomic<int> left_{-1};  // a rank that an exception has taken away
};

}  // namespace ropewalk::transport
