// The ways to transpose a divided array of complex numbers, by the plain MPI and by ropewalk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fft/grid.hpp"
#include "fft/lines.hpp"
#include "ropewalk/communicator.hpp"

namespace ropewalk::bench {

class FftTranspose {
 public:
  FftTranspose() = default;
  FftTranspose(const FftTranspose&) = delete;
  FftTranspose& operator=(const FftTranspose&) = delete;
  virtual ~FftTranspose() = default;
  virtual Complex* data() const = 0;           // the array that receives
  virtual void run(const Complex* array) = 0;  // collective
};

// alltoallw: MPI_Alltoallw of subarrays; packed: MPI_Alltoall, or MPI_Alltoallv where the parts are
// uneven, of buffers that the rank packs and unpacks; collectives: the same by ropewalk's
// Collectives; exchange: ropewalk's SubarrayExchange.
const std::vector<std::string>& fft_way_names();
bool is_by_mpi(const std::string& way);
// Collective over the ranks that exchange.
std::unique_ptr<FftTranspose> make_transpose(const std::string& way, Communicator ranks,
                                             const TransposeShape& shape);

}  // namespace ropewalk::bench
