// Where the data of elements of any type lie in memory, and copies from one such layout to another
// without packing between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"
#include "mpi/datatypes.hpp"

namespace ropewalk::collectives {

// What there is to know of a datatype to copy its elements.
struct Pattern {
  mpi::Datatype type{};
  std::size_t bytes = 0;    // of data in one element
  std::int64_t extent = 0;  // bytes from one element to the next
  bool known = false;       // false: MPI packs and unpacks
  std::vector<mpi::StridedBlock> blocks;
  // Bytes from an element's address to its lowest byte of data, and behind its highest.
  std::int64_t low = 0;
  std::int64_t high = 0;
};
// Asks MPI, in a few local calls a constructor of the type. Throws Error where MPI refuses it.
Pattern pattern_of(mpi::Datatype);

// Elements at an address, which may be another rank's as it is mapped here.
struct StridedElements {
  std::uintptr_t address = 0;
  std::span<const mpi::StridedBlock> blocks;
  std::int64_t count = 0;
  std::int64_t extent = 0;
};
inline mpi::StridedBlock one_run(std::size_t bytes) noexcept {
  mpi::StridedBlock run;
  run.run = static_cast<std::int64_t>(bytes);
  return run;
}
inline StridedElements gapless(const std::byte* data, const mpi::StridedBlock& run) noexcept {
  return {reinterpret_cast<std::uintptr_t>(data), std::span(&run, 1), 1, run.run};
}

// Copies `bytes` of data in the order of both type maps; both sides have as many. No two bytes of
// the target may be one, as MPI demands of what is received.
void copy_elements(const StridedElements& from, const StridedElements& to, std::size_t bytes,
                   kernels::Stores) noexcept;

// The elements that a rank sends to one other, or receives from it.
struct TypedPart {
  const void* data = nullptr;  // address of the first element
  std::size_t count = 0;
  const Pattern* pattern = nullptr;  // set where there are elements
  bool absolute = false;             // displacements are addresses: `data` came from MPI_BOTTOM

  std::size_t bytes() const noexcept { return count == 0 ? 0 : count * pattern->bytes; }
  StridedElements elements() const noexcept;
  // The bytes of memory from the lowest to the highest byte of data.
  const std::byte* lowest() const noexcept;
  std::size_t span() const noexcept;
  // Where the data lie if they are one run of bytes, in their order; otherwise null.
  const std::byte* as_run() const noexcept;

  void pack(std::byte* to) const;
  void unpack(const std::byte* from) const;
};

}  // namespace ropewalk::collectives
