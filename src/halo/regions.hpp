// The geometry of a field: which cells are sent, which ghosts they fill.
#pragma once

#include <vector>

#include "kernels/strided_copy.hpp"
#include "ropewalk/halo.hpp"

namespace ropewalk::halo {

// A region is a block of a field's array: where it begins, and its extents in elements.
struct Region {
  std::byte* first;
  std::vector<std::size_t> extents;
};

// Whether the field has ghosts in each dimension in which the offset is not zero.
bool takes_part(const Field&, const std::vector<int>& offset);
Region sent_towards(const Field&, const std::vector<int>& offset);    // lies in the interior
Region ghosts_towards(const Field&, const std::vector<int>& offset);  // lies beyond the interior
// Both regions have the same size.
std::size_t region_bytes(const Field&, const std::vector<int>& offset);

std::vector<std::size_t> array_strides(const Field&);  // bytes, of the array with its ghosts
std::vector<std::size_t> dense_strides(const Region&, std::size_t element_bytes);

kernels::StridedCopy plain_copy(const void* from, void* to, std::size_t bytes);
kernels::StridedCopy pack(const Field&, const Region&, std::byte* to);
kernels::StridedCopy unpack(const Field&, const Region&, const std::byte* from);
// Copies between two arrays of the same elements, which may differ in extents.
kernels::StridedCopy copy(const Field& source, const Region& from, const Field& destination,
                          const Region& to);

// Whether the region is one run of bytes in the field, so that it can be sent or received in place.
bool contiguous(const Field&, const Region&);

// Throws Error(argument) naming field[index] and its member: null data, zero extents or elements,
// wrong numbers of dimensions, arrays beyond the address space, and widths above the interior in
// dimensions where `grid` has a neighbour. Local.
void check_field(const Field&, std::size_t index, const CartesianGrid& grid);

}  // namespace ropewalk::halo
