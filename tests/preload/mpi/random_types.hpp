// Random datatypes: trees of constructors over a base, which keep its elements in their order; and
// memory of several kinds.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "the_mpi.hpp"

namespace test {

inline std::mt19937_64 own;  // draws what a rank decides alone

inline int below(std::mt19937_64& random, int limit) {
  return static_cast<int>(random() % static_cast<unsigned>(limit));
}

struct TypeBounds {
  MPI_Aint low = 0;
  MPI_Aint bytes = 0;
};
inline TypeBounds bounds(MPI_Datatype type) {
  TypeBounds out;
  MPI_Type_get_true_extent(type, &out.low, &out.bytes);
  return out;
}

inline MPI_Datatype replaced(MPI_Datatype old, MPI_Datatype made) {
  MPI_Type_free(&old);
  return made;
}

// The same data with room for copies side by side.
inline MPI_Datatype spaced(MPI_Datatype type) {
  const TypeBounds at = bounds(type);
  MPI_Datatype made;
  MPI_Type_create_resized(type, at.low, at.bytes + 8 * below(own, 3), &made);
  return replaced(type, made);
}

// Where `copies` of a type lie, in any order and with gaps.
inline std::vector<MPI_Aint> places(int copies, MPI_Aint step) {
  std::vector<MPI_Aint> out;
  for (MPI_Aint at = 0; static_cast<int>(out.size()) < copies; at += step) {
    if (below(own, 3) > 0) out.push_back(at);
  }
  const int order = below(own, 3);
  if (order == 1) std::reverse(out.begin(), out.end());
  if (order == 2) std::shuffle(out.begin(), out.end(), own);
  return out;
}

inline MPI_Datatype subarray(MPI_Datatype part, int copies) {
  int divisor = 1;
  while (copies % (divisor + 1) == 0 && below(own, 2) == 0) ++divisor;
  const int extents[3] = {divisor, 1, copies / divisor};
  int sizes[3];
  int starts[3];
  for (int d = 0; d < 3; ++d) {
    starts[d] = below(own, 3);
    sizes[d] = extents[d] + starts[d] + below(own, 3);
  }
  MPI_Datatype made;
  MPI_Type_create_subarray(3, sizes, extents, starts,
                           below(own, 2) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN, part, &made);
  return made;
}

// All of a distributed array on a grid of one process.
inline MPI_Datatype distributed(MPI_Datatype part, int copies) {
  const int sizes[1] = {copies};
  const int kinds[1] = {MPI_DISTRIBUTE_BLOCK};
  const int arguments[1] = {MPI_DISTRIBUTE_DFLT_DARG};
  const int grid[1] = {1};
  MPI_Datatype made;
  MPI_Type_create_darray(1, 0, 1, sizes, kinds, arguments, grid, MPI_ORDER_C, part, &made);
  return made;
}

inline MPI_Datatype structure(MPI_Datatype part, const std::vector<MPI_Aint>& at) {
  const std::vector<int> ones(at.size(), 1);
  const std::vector<MPI_Datatype> parts(at.size(), part);
  MPI_Datatype made;
  MPI_Type_create_struct(static_cast<int>(at.size()), ones.data(), at.data(), parts.data(), &made);
  return made;
}

// `copies` of a type that do not overlap.
inline MPI_Datatype several(MPI_Datatype part, int copies) {
  const TypeBounds one = bounds(part);
  const MPI_Aint step = one.bytes + 8 * below(own, 3);
  const std::vector<MPI_Aint> at = places(copies, step);
  MPI_Datatype made;
  switch (below(own, 8)) {
    case 0:
      MPI_Type_contiguous(copies, part = spaced(part), &made);
      break;
    case 1:
      MPI_Type_vector(copies, 1, below(own, 2) == 0 ? 2 : -3, part = spaced(part), &made);
      break;
    case 2:
      // Open MPI 5.0.11 takes copies that touch for ascending ones, whatever the sign.
      MPI_Type_create_hvector(copies, 1, below(own, 2) == 0 ? step : -step - 8, part, &made);
      break;
    case 3:
      MPI_Type_create_hindexed_block(copies, 1, at.data(), part, &made);
      break;
    case 4:
      made = structure(part, at);
      break;
    case 5:
      made = subarray(part = spaced(part), copies);
      break;
    case 6:
      made = below(own, 4) == 0 ? distributed(part = spaced(part), copies)
                                : subarray(part = spaced(part), copies);
      break;
    default:
      MPI_Type_dup(part, &made);
      part = replaced(part, made);
      MPI_Type_contiguous(copies, part = spaced(part), &made);
  }
  return replaced(part, made);
}

inline int divisor_of(int number) {
  for (int tries = 0; tries < 6; ++tries) {
    const int one = 1 + below(own, std::min(number, 64));
    if (number % one == 0) return one;
  }
  return 1;
}

// A tree over `elements` of the base, in its order.
inline MPI_Datatype tree(MPI_Datatype base, int elements, int depth) {
  if (depth == 0 || elements <= 1) {
    MPI_Datatype made;
    MPI_Type_contiguous(elements, base, &made);
    return made;
  }
  const int copies = divisor_of(elements);
  return several(tree(base, elements / copies, depth - 1), copies);
}

// Where a buffer lies: of malloc, of MPI_Alloc_mem, or private whatever the malloc.
enum class BufferMemory { heap, arena, mapped };

class MemoryBuffer {
 public:
  MemoryBuffer(BufferMemory memory, std::size_t bytes) : memory_(memory), bytes_(bytes) {
    void* made = nullptr;
    if (memory == BufferMemory::heap) made = std::malloc(bytes);
    if (memory == BufferMemory::arena)
      MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &made);
    if (memory == BufferMemory::mapped) {  // private, whatever the malloc
      made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    data_ = static_cast<char*>(made);
  }
  ~MemoryBuffer() {
    if (memory_ == BufferMemory::heap) std::free(data_);
    if (memory_ == BufferMemory::arena) MPI_Free_mem(data_);
    if (memory_ == BufferMemory::mapped) munmap(data_, bytes_);
  }
  MemoryBuffer(const MemoryBuffer&) = delete;
  MemoryBuffer& operator=(const MemoryBuffer&) = delete;
  char* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  BufferMemory memory_;
  std::size_t bytes_;
  char* data_ = nullptr;
};

}  // namespace test
