// How a grid of three dimensions is divided over a grid of ranks, and what ranks send each other
// when it is divided another way.
//
// One axis is whole on every rank, the other two are divided by the two dimensions of the grid of
// ranks, in order. A grid of P.1 ranks makes slabs, any other one pencils. Forward transforms begin
// with the whole axis 2 and end with the whole axis 0.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace ropewalk::bench {

using Triple = std::array<int, 3>;

// The cells of one part along an axis. Where they cannot be divided evenly the first parts have one
// more.
struct AxisShare {
  int first = 0;
  int count = 0;
};
AxisShare axis_share(int cells, int parts, int part);

struct GridBox {
  Triple first{};
  Triple count{};
};

struct DividedGrid {
  Triple cells{};
  std::array<int, 2> ranks{1, 1};
  std::array<int, 2> place{0, 0};  // of this rank

  GridBox box(int whole_axis) const;
};

// The dimension of the grid of ranks whose members exchange cells between two neighbouring forms.
inline int exchanging_dimension(int from_axis, int to_axis) {
  return from_axis == 0 || to_axis == 0 ? 0 : 1;
}

// From the form in which one axis is whole to the one in which a neighbouring axis is. Boxes are
// within the arrays, one for each rank of the exchanging dimension.
struct TransposeShape {
  Triple from{};         // cells of the array that is sent
  Triple to{};           // of the array that is received
  bool is_even = false;  // all ranks send and receive equally large boxes
  std::vector<GridBox> sent;
  std::vector<GridBox> received;
};
TransposeShape transpose_shape(const DividedGrid& grid, int from_axis, int to_axis);

// Elements of an array or a box, and the place of the first one of a line along the last axis.
std::size_t volume(const Triple& cells);
std::size_t line_place(const Triple& array, const GridBox& box, int i, int j);

}  // namespace ropewalk::bench
