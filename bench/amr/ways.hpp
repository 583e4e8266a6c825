// How a rank of the mesh sends its messages and adds up its counts: by the plain MPI, and by
// ropewalk's channel and collectives.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/ranks.hpp"

namespace ropewalk::bench {

class AmrWay {
 public:
  AmrWay() = default;
  AmrWay(const AmrWay&) = delete;
  AmrWay& operator=(const AmrWay&) = delete;
  virtual ~AmrWay() = default;
  virtual void start_send(const double* values, std::size_t count, int to) = 0;
  virtual void start_receive(double* values, std::size_t count, int from) = 0;
  virtual void wait_all() = 0;
  virtual double sum(double value) = 0;  // over all ranks
};

// isend: MPI_Isend, MPI_Irecv and MPI_Allreduce; channel: a Channel and Collectives.
const std::vector<std::string>& amr_way_names();
std::unique_ptr<AmrWay> make_amr_way(const std::string& name, const Ranks& ranks);  // collective

}  // namespace ropewalk::bench
