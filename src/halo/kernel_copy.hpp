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
  KernelCopy(const kernels::StridedCopy& copy, Way way);

  // False, and errno says why, where the kernel refuses. Allocates nothing. Several threads may
  // run different copies at once.
  bool run(channel::PeerMemory& memory, int peer) noexcept;
  // Appends copies that together do the same, as StridedCopy::append_parts().
  void append_parts(std::size_t most_bytes, std::vector<KernelCopy>& out) const;
  std::size_t bytes() const noexcept { return copy_.bytes(); }

 private:
  bool run_in_lists(channel::PeerMemory& memory, int peer) const noexcept;
  bool run_with_gaps(channel::PeerMemory& memory, int peer) noexcept;

  kernels::StridedCopy copy_;
  Way way_;
  // Where the source has little between its runs, it is read as one run, gaps included, in parts
  // that fit here; the runs are copied on from here. Else both are empty.
  std::vector<std::byte> read_;
  std::vector<kernels::StridedCopy> parts_;
};

// Whether a strided source has so little between its runs that the kernel reads it as one.
bool has_small_gaps(const kernels::StridedCopy& copy) noexcept;

}  // namespace ropewalk::halo
