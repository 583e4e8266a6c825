// Sizes, places and contents of the faces; see faces.hpp.
#include "comms/faces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/parse.hpp"
#include "common/pattern.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t boundary = 4096;  // faces begin on a page of their own, as Grid's do

std::size_t rounded(std::size_t bytes) { return (bytes + boundary - 1) / boundary * boundary; }

}  // namespace

std::string label(const Lattice& lattice) {
  const std::vector<int>& local = lattice.local;
  const bool cube = std::all_of(local.begin(), local.end(), [&](int e) { return e == local[0]; });
  return cube ? std::to_string(local[0]) : dotted(local);
}

std::size_t face_bytes(const Lattice& lattice, int dimension) {
  std::size_t sites = static_cast<std::size_t>(lattice.Ls);
  for (int d = 0; d < static_cast<int>(lattice.local.size()); ++d) {
    if (d != dimension) sites *= static_cast<std::size_t>(lattice.local[d]);
  }
  return sites * half_spinor_bytes;
}

std::size_t exchange_bytes(const Lattice& lattice, const std::vector<int>& rank_grid) {
  std::size_t bytes = 0;
  for (int d = 0; d < static_cast<int>(rank_grid.size()); ++d) {
    if (rank_grid[d] > 1) bytes += 2 * face_bytes(lattice, d);
  }
  return bytes;
}

std::size_t slot_bytes(const Lattice& lattice, const std::vector<int>& rank_grid) {
  std::size_t bytes = 0;
  for (int d = 0; d < static_cast<int>(rank_grid.size()); ++d) {
    if (rank_grid[d] > 1) bytes += 4 * rounded(face_bytes(lattice, d));
  }
  return bytes;
}

FaceBuffers::FaceBuffers(std::byte* memory, const Lattice& lattice, const CartesianGrid& grid,
                         int slots)
    : grid_(grid) {
  for (int slot = 0; slot < slots; ++slot) {
    FacePackets packets;
    for (int d = 0; d < grid.dimensions(); ++d) {
      const std::size_t bytes = grid.extents()[d] > 1 ? face_bytes(lattice, d) : 0;
      for (int side = 0; side < 2; ++side) {
        packets.bytes.push_back(bytes);
        packets.send.push_back(bytes > 0 ? memory : nullptr);
        memory += rounded(bytes);
        packets.receive.push_back(bytes > 0 ? memory : nullptr);
        memory += rounded(bytes);
      }
    }
    packets_.push_back(std::move(packets));
  }
}

void FaceBuffers::fill(std::uint64_t serial) {
  for (int slot = 0; slot < slots(); ++slot) {
    const FacePackets& faces = packets(slot);
    for (std::size_t i = 0; i < faces.bytes.size(); ++i) {
      if (faces.bytes[i] == 0) continue;
      const auto rank = static_cast<std::uint64_t>(grid_.rank());
      const auto key = pattern_key(rank, i, static_cast<std::uint64_t>(slot), serial);
      fill_pattern(const_cast<void*>(faces.send[i]), faces.bytes[i], key);
      std::memset(faces.receive[i], 0xee, faces.bytes[i]);
    }
  }
}

std::string FaceBuffers::check(std::uint64_t serial) const {
  for (int slot = 0; slot < slots(); ++slot) {
    const FacePackets& faces = packets(slot);
    for (std::size_t i = 0; i < faces.bytes.size(); ++i) {
      if (faces.bytes[i] == 0) continue;
      const int from = grid_.neighbour(static_cast<int>(i / 2), i % 2 == 0 ? 1 : -1);
      // What came from the neighbour at + is what that one sent towards -, and the reverse.
      const std::size_t sent = i ^ 1;
      const auto key = pattern_key(static_cast<std::uint64_t>(from), sent,
                                   static_cast<std::uint64_t>(slot), serial);
      const std::size_t right = check_pattern(faces.receive[i], faces.bytes[i], key);
      if (right != faces.bytes[i]) {
        return fmt::format(
            "rank {}: face from rank {} ({} of dimension {}) is wrong at byte {} of {}",
            grid_.rank(), from, i % 2 == 0 ? "+" : "-", i / 2, right, faces.bytes[i]);
      }
    }
  }
  return "";
}

void FaceBuffers::copy(int slot) const {
  const FacePackets& faces = packets(slot);
  for (std::size_t i = 0; i < faces.bytes.size(); ++i) {
    if (faces.bytes[i] > 0) std::memcpy(faces.receive[i], faces.send[i], faces.bytes[i]);
  }
}

}  // namespace ropewalk::bench
