// Sizes, places and contents of the faces; see faces.hpp.
#include "comms/faces.hpp"

#include <fmt/format.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstring>

#include "common/parse.hpp"
#include "common/pattern.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t boundary = 4096;  // faces begin on a page of their own, as Grid's do

std::size_t rounded(std::size_t bytes) { return (bytes + boundary - 1) / boundary * boundary; }

#if defined(__x86_64__)

void string_move(void* to, const void* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

// Faces begin on pages and are multiples of 96 bytes: whole 16-byte words throughout.
void streaming(void* to, const void* from, std::size_t bytes) {
  auto* out = static_cast<__m128i*>(to);
  const auto* in = static_cast<const __m128i*>(from);
  for (std::size_t i = 0; i < bytes / 16; ++i) _mm_stream_si128(out + i, _mm_load_si128(in + i));
  _mm_sfence();
}

constexpr bool has_ways = true;

#else

void string_move(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void streaming(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
constexpr bool has_ways = false;

#endif

}  // namespace

void copy_bytes(void* to, const void* from, std::size_t bytes, CopyWay way) {
  if (way == CopyWay::string_move) return string_move(to, from, bytes);
  if (way == CopyWay::streaming) return streaming(to, from, bytes);
  std::memcpy(to, from, bytes);
}

std::vector<CopyWay> copy_ways() {
  if (!has_ways) return {CopyWay::library};
  return {CopyWay::library, CopyWay::string_move, CopyWay::streaming};
}

const char* name(CopyWay way) {
  if (way == CopyWay::string_move) return "rep movsb";
  return way == CopyWay::streaming ? "streaming stores" : "memcpy";
}

std::string label(const LocalLattice& lattice) {
  const std::vector<int>& local = lattice.local;
  const bool cube = std::all_of(local.begin(), local.end(), [&](int e) { return e == local[0]; });
  return cube ? std::to_string(local[0]) : dotted(local);
}

std::size_t face_bytes(const LocalLattice& lattice, int dimension) {
  std::size_t sites = static_cast<std::size_t>(lattice.Ls);
  for (int d = 0; d < static_cast<int>(lattice.local.size()); ++d) {
    if (d != dimension) sites *= static_cast<std::size_t>(lattice.local[d]);
  }
  return sites * half_spinor_bytes;
}

std::size_t exchange_bytes(const LocalLattice& lattice, const std::vector<int>& rank_grid) {
  std::size_t bytes = 0;
  for (int d = 0; d < static_cast<int>(rank_grid.size()); ++d) {
    if (rank_grid[d] > 1) bytes += 2 * face_bytes(lattice, d);
  }
  return bytes;
}

std::size_t slot_bytes(const LocalLattice& lattice, const std::vector<int>& rank_grid) {
  std::size_t bytes = 0;
  for (int d = 0; d < static_cast<int>(rank_grid.size()); ++d) {
    if (rank_grid[d] > 1) bytes += 4 * rounded(face_bytes(lattice, d));
  }
  return bytes;
}

FaceBuffers::FaceBuffers(std::byte* memory, const LocalLattice& lattice, const CartesianGrid& grid,
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

void FaceBuffers::copy(int slot, CopyWay way) const {
  const FacePackets& faces = packets(slot);
  for (std::size_t i = 0; i < faces.bytes.size(); ++i) {
    if (faces.bytes[i] > 0) copy_bytes(faces.receive[i], faces.send[i], faces.bytes[i], way);
  }
}

}  // namespace ropewalk::bench
