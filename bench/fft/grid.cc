#include "fft/grid.hpp"

#include <algorithm>

namespace ropewalk::bench {
namespace {

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

}  // namespace

AxisShare axis_share(int cells, int parts, int part) {
  const int less = cells / parts;
  const int longer = cells % parts;
  return {part * less + std::min(part, longer), less + (part < longer ? 1 : 0)};
}

GridBox DividedGrid::box(int whole_axis) const {
  GridBox box;
  std::size_t dimension = 0;
  for (int axis = 0; axis < 3; ++axis) {
    AxisShare share{0, cells[at(axis)]};
    if (axis != whole_axis) {
      share = axis_share(cells[at(axis)], ranks[dimension], place[dimension]);
      ++dimension;
    }
    box.first[at(axis)] = share.first;
    box.count[at(axis)] = share.count;
  }
  return box;
}

TransposeShape transpose_shape(const DividedGrid& grid, int from_axis, int to_axis) {
  TransposeShape shape;
  shape.from = grid.box(from_axis).count;
  shape.to = grid.box(to_axis).count;
  const int parts = grid.ranks[at(exchanging_dimension(from_axis, to_axis))];
  shape.is_even = grid.cells[at(from_axis)] % parts == 0 && grid.cells[at(to_axis)] % parts == 0;
  for (int part = 0; part < parts; ++part) {
    const auto limited = [&](const Triple& whole, int axis) {
      const AxisShare share = axis_share(grid.cells[at(axis)], parts, part);
      GridBox box{{0, 0, 0}, whole};
      box.first[at(axis)] = share.first;
      box.count[at(axis)] = share.count;
      return box;
    };
    shape.sent.push_back(limited(shape.from, from_axis));
    shape.received.push_back(limited(shape.to, to_axis));
  }
  return shape;
}

std::size_t volume(const Triple& cells) {
  return static_cast<std::size_t>(cells[0]) * static_cast<std::size_t>(cells[1]) *
         static_cast<std::size_t>(cells[2]);
}

std::size_t line_place(const Triple& array, const GridBox& box, int i, int j) {
  const auto row = static_cast<std::size_t>(box.first[0] + i) * static_cast<std::size_t>(array[1]) +
                   static_cast<std::size_t>(box.first[1] + j);
  return row * static_cast<std::size_t>(array[2]) + static_cast<std::size_t>(box.first[2]);
}

}  // namespace ropewalk::bench
