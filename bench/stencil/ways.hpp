// The ways to fill the ghosts of a block: a program's own messages through the plain MPI, and
// ropewalk's halo.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/ranks.hpp"
#include "ropewalk/endpoint.hpp"
#include "stencil/block.hpp"

namespace ropewalk::bench {

class StencilWay {
 public:
  StencilWay() = default;
  StencilWay(const StencilWay&) = delete;
  StencilWay& operator=(const StencilWay&) = delete;
  virtual ~StencilWay() = default;
  virtual void start() = 0;
  virtual void wait() = 0;
  // Where nothing is computed meanwhile.
  virtual void exchange() {
    start();
    wait();
  }
  virtual std::string path() const { return "mpi"; }  // what it came to

  // Ways whose copies all threads of a rank share: each calls these, in place of the above.
  virtual bool is_shared() const noexcept { return false; }
  virtual void start_worker(int /*worker*/) {}
  virtual void wait_worker(int /*worker*/) {}
};

// isend: MPI_Isend and MPI_Irecv of subarrays; packed: of buffers that the rank packs and unpacks;
// neighbor_alltoallw: that call, and MPI_Ineighbor_alltoallw where something is computed meanwhile.
// All others are strategies of Halo.
const std::vector<std::string>& stencil_way_names();
// Collective. Null on all ranks where a strategy of ropewalk is not possible here.
std::unique_ptr<StencilWay> make_way(const std::string& name, const CartesianGrid&, EndpointSet&,
                                     StencilBlock&, int threads);

}  // namespace ropewalk::bench
