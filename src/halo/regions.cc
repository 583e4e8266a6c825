// Regions by index arithmetic, and the checks of a field that need no other rank.
#include "halo/regions.hpp"

#include <string>

#include "halo/request.hpp"

namespace ropewalk::halo {

namespace {

std::string member(std::size_t index, const char* name, std::size_t dimension) {
  return "field[" + std::to_string(index) + "]." + name + "[" + std::to_string(dimension) + "]";
}

// Positions along one dimension are, in this order: ghosts, interior, ghosts.
Region region(const Field& field, const std::vector<int>& offset, bool ghosts) {
  const std::vector<std::size_t> strides = array_strides(field);
  Region out{static_cast<std::byte*>(field.data), field.interior};
  for (std::size_t d = 0; d < offset.size(); ++d) {
    const std::size_t width = field.ghost[d];
    std::size_t begin = width;
    if (offset[d] > 0) begin = ghosts ? width + field.interior[d] : field.interior[d];
    if (offset[d] < 0 && ghosts) begin = 0;
    if (offset[d] != 0) out.extents[d] = width;
    out.first += begin * strides[d];
  }
  return out;
}

void check_counts(const Field& field, std::size_t index, std::size_t dimensions) {
  const std::string name = "field[" + std::to_string(index) + "]";
  if (field.interior.size() != dimensions) {
    refuse(name + ".interior: " + std::to_string(field.interior.size()) + " extents, expected " +
           std::to_string(dimensions) + " as the grid has; pass one a dimension");
  }
  if (field.ghost.size() != dimensions) {
    refuse(name + ".ghost: " + std::to_string(field.ghost.size()) + " widths, expected " +
           std::to_string(dimensions) + " as the grid has; pass one a dimension");
  }
  if (field.element_bytes == 0) {
    refuse(name + ".element_bytes: 0, expected at least 1; pass sizeof the element type");
  }
  if (field.data == nullptr) {
    refuse(name + ".data: null, expected the first byte of the array; allocate it first");
  }
}

bool has_neighbour(const CartesianGrid& grid, int dimension) {
  return grid.neighbour(dimension, 1) >= 0 || grid.neighbour(dimension, -1) >= 0;
}

void check_widths(const Field& field, std::size_t index, const CartesianGrid& grid) {
  for (std::size_t d = 0; d < field.interior.size(); ++d) {
    if (field.interior[d] == 0) {
      refuse(member(index, "interior", d) +
             ": 0 cells, expected at least 1; give every rank a part of the field");
    }
    if (field.ghost[d] > field.interior[d] && has_neighbour(grid, static_cast<int>(d))) {
      refuse(member(index, "ghost", d) + ": width " + std::to_string(field.ghost[d]) +
             ", expected at most the " + std::to_string(field.interior[d]) +
             " cells of the interior; use narrower ghosts or fewer ranks in this dimension");
    }
  }
}

void check_size(const Field& field, std::size_t index) {
  std::size_t bytes = field.element_bytes;
  for (std::size_t d = 0; d < field.interior.size(); ++d) {
    std::size_t extent = 0;
    if (__builtin_mul_overflow(field.ghost[d], std::size_t{2}, &extent) ||
        __builtin_add_overflow(extent, field.interior[d], &extent) ||
        __builtin_mul_overflow(bytes, extent, &bytes) || bytes > PTRDIFF_MAX) {
      refuse("field[" + std::to_string(index) +
             "]: more bytes than memory has addresses, expected below 2^63; check interior, ghost "
             "and element_bytes");
    }
  }
}

}  // namespace

bool takes_part(const Field& field, const std::vector<int>& offset) {
  for (std::size_t d = 0; d < offset.size(); ++d) {
    if (offset[d] != 0 && field.ghost[d] == 0) return false;
  }
  return true;
}

Region sent_towards(const Field& field, const std::vector<int>& offset) {
  return region(field, offset, false);
}

Region ghosts_towards(const Field& field, const std::vector<int>& offset) {
  return region(field, offset, true);
}

std::size_t region_bytes(const Field& field, const std::vector<int>& offset) {
  std::size_t bytes = field.element_bytes;
  for (std::size_t d = 0; d < offset.size(); ++d) {
    bytes *= offset[d] == 0 ? field.interior[d] : field.ghost[d];
  }
  return bytes;
}

std::vector<std::size_t> array_strides(const Field& field) {
  std::vector<std::size_t> strides(field.interior.size());
  std::size_t stride = field.element_bytes;
  for (std::size_t d = strides.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= field.interior[d] + 2 * field.ghost[d];
  }
  return strides;
}

std::vector<std::size_t> dense_strides(const Region& region, std::size_t element_bytes) {
  std::vector<std::size_t> strides(region.extents.size());
  std::size_t stride = element_bytes;
  for (std::size_t d = strides.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= region.extents[d];
  }
  return strides;
}

kernels::StridedCopy plain_copy(const void* from, void* to, std::size_t bytes) {
  return {from, to, {{}, {}, {}, bytes}};
}

kernels::StridedCopy pack(const Field& field, const Region& from, std::byte* to) {
  const auto source = array_strides(field);
  const auto destination = dense_strides(from, field.element_bytes);
  return {from.first, to, {from.extents, source, destination, field.element_bytes}};
}

kernels::StridedCopy unpack(const Field& field, const Region& to, const std::byte* from) {
  const auto source = dense_strides(to, field.element_bytes);
  const auto destination = array_strides(field);
  return {from, to.first, {to.extents, source, destination, field.element_bytes}};
}

kernels::StridedCopy copy(const Field& source, const Region& from, const Field& destination,
                          const Region& to) {
  const auto from_strides = array_strides(source);
  const auto to_strides = array_strides(destination);
  return {from.first, to.first, {to.extents, from_strides, to_strides, source.element_bytes}};
}

bool contiguous(const Field& field, const Region& region) {
  return pack(field, region, region.first).contiguous();
}

void check_field(const Field& field, std::size_t index, const CartesianGrid& grid) {
  check_counts(field, index, static_cast<std::size_t>(grid.dimensions()));
  check_widths(field, index, grid);
  check_size(field, index);
}

}  // namespace ropewalk::halo
