// The farewell: how the ranks of an endpoint set part with nothing left in flight.
#pragma once

#include <span>
#include <vector>

#include "mpi/mpi.hpp"
#include "transport/backoff.hpp"

namespace ropewalk::transport {

// A dissemination barrier on lane 0 (Hensgen, Finkel and Manber 1988: log2 p rounds of empty
// messages), made of requests so that this rank can drain its lanes meanwhile: a peer may be stuck
// in the send of a message whose receive was cancelled here.
class Farewell {
 public:
  explicit Farewell(std::span<const mpi::Comm> lanes);
  // Returns when every rank has come here, or when one of them is lost(). Throws what MPI throws.
  template <class Lost>
  void wait(Lost lost) {
    Backoff backoff;
    if (!receives_.empty()) send_round();
    while (!advance()) {
      drain();
      if (backoff.patient() && lost()) return give_up();
      backoff.pause();
    }
  }

 private:
  bool advance();
  void send_round();
  void drain();
  void give_up() noexcept;

  std::span<const mpi::Comm> lanes_;
  int rank_;
  int size_;
  std::size_t round_ = 0;
  std::vector<mpi::Request> receives_;  // posted first of all: draining must not take them
  std::vector<mpi::Request> sends_;
  std::vector<std::byte> dropped_;
};

}  // namespace ropewalk::transport
