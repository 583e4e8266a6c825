// The packets of the benchmark: how large a face is, where its buffers lie, what is in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::bench {

// A half spinor of 2 spins x 3 colours, double precision complex: what lattice codes send a site.
constexpr std::size_t half_spinor_bytes = 96;

struct LocalLattice {
  std::vector<int> local;  // x, y, z, t of one rank
  int Ls = 8;
};
std::string label(const LocalLattice& lattice);  // "8" for 8.8.8.8, else "8.8.8.4"
// Returns the bytes of the face orthogonal to a dimension: 49152 for L=4, Ls=8; 25165824 for L=32.
std::size_t face_bytes(const LocalLattice& lattice, int dimension);
// What a rank sends in one exchange: the faces in both directions of all divided dimensions.
std::size_t exchange_bytes(const LocalLattice& lattice, const std::vector<int>& rank_grid);
// Bytes of one slot: buffers to send and to receive all faces of an exchange, on 4 KiB boundaries.
std::size_t slot_bytes(const LocalLattice& lattice, const std::vector<int>& rank_grid);

// Ways to copy a face; which one is fastest differs between machines and sizes.
enum class CopyWay {
  library,      // memcpy
  string_move,  // `rep movsb`, as kernels copy
  streaming     // non-temporal stores
};
std::vector<CopyWay> copy_ways();  // those of this machine
const char* name(CopyWay way);
// Both places lie on 16-byte boundaries.
void copy_bytes(void* to, const void* from, std::size_t bytes, CopyWay way);

// Buffers of `slots` exchanges of one lattice in a block of memory, one slot behind the other.
class FaceBuffers {
 public:
  FaceBuffers(std::byte* memory, const LocalLattice& lattice, const CartesianGrid& grid, int slots);

  int slots() const noexcept { return static_cast<int>(packets_.size()); }
  const FacePackets& packets(int slot) const { return packets_[static_cast<std::size_t>(slot)]; }

  // Writes what this rank sends, and ruins what it received before.
  void fill(std::uint64_t serial);
  // The result is empty where every face came whole from the right neighbour; else what is wrong.
  std::string check(std::uint64_t serial) const;
  // The limit: this rank's packets copied once from send to receive buffers.
  void copy(int slot, CopyWay way) const;

 private:
  const CartesianGrid& grid_;
  std::vector<FacePackets> packets_;
};

}  // namespace ropewalk::bench
