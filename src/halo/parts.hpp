// What a halo consists of once it is made.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "halo/carrier.hpp"
#include "halo/streaming.hpp"
#include "halo/tags.hpp"
#include "halo/workers.hpp"
#include "kernels/strided_copy.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::halo {

struct HaloParts {
  Tags tags;                                     // given back when nothing is under way any more
  Buffer<std::byte> faces;                       // of HaloBuffers, where the carrier copies them
  Places places;                                 // of HaloBuffers
  std::size_t wire_bytes = 0;                    // to other nodes, in one exchange
  std::vector<kernels::StridedCopy> own_copies;  // from faces of this rank to ghosts of this rank
  std::shared_ptr<Workers> workers;              // of this rank
  std::unique_ptr<Carrier> carrier;  // the last: its end waits for what is under way in the rest

  void start() {
    complete_streaming_stores();  // whoever reads the faces: a neighbour, or another thread
    carrier->start();
    run_own_copies();
  }
  void run_own_copies() const { workers->run(own_copies); }
};

}  // namespace ropewalk::halo
