// Copies of faces from or to private memory of another rank, which the kernel makes (CMA).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "channel/peer_memory.hpp"
#include "kernels/strided_copy.hpp"

namespace ropewalk::halo {

class KernelCopy {
 public:
  enum class Way : std::uint8_t {
    read,  // the source is memory of the peer
    write  // the destination is
  };
  // On one side, the addresses of the copy are those of the peer's process.
  KernelCopy(const kernels::StridedCopy& copy, Way way) noexcept : copy_(copy), way_(way) {}

  // False, and errno says why, where the kernel refuses. Allocates nothing. Several threads may
  // copy at once.
  bool run(channel::PeerMemory& memory, int peer) const noexcept;
  // Appends copies that together do the same, as StridedCopy::append_parts().
  void append_parts(std::size_t most_bytes, std::vector<KernelCopy>& out) const;
  std::size_t bytes() const noexcept { return copy_.bytes(); }

 private:
  kernels::StridedCopy copy_;
  Way way_;
};

}  // namespace ropewalk::halo
