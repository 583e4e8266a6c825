// This file numbers the directions, and tells what lies in each.
#include "halo/links.hpp"

#include <algorithm>

namespace ropewalk::halo {

namespace {

using Offset = std::vector<int>;

std::vector<Offset> face_offsets(std::size_t dimensions) {
  std::vector<Offset> out;
  for (std::size_t d = 0; d < dimensions; ++d) {
    for (int side : {1, -1}) {
      Offset offset(dimensions, 0);
      offset[d] = side;
      out.push_back(std::move(offset));
    }
  }
  return out;
}

int nonzero(const Offset& offset) {
  return static_cast<int>(offset.size() - std::count(offset.begin(), offset.end(), 0));
}

void append_corners(std::vector<Offset>& out, std::size_t dimensions) {
  Offset offset(dimensions, -1);
  for (;;) {
    if (nonzero(offset) > 1) out.push_back(offset);
    std::size_t d = dimensions;
    while (d > 0 && offset[d - 1] == 1) offset[--d] = -1;
    if (d == 0) return;
    ++offset[d - 1];
  }
}

// Tells whether data crosses from rank to rank in this direction anywhere in the grid. It uses
// facts of the grid alone, so every rank comes to the same numbers.
bool crosses(const CartesianGrid& grid, const Offset& offset) {
  bool crossing = false;
  for (std::size_t d = 0; d < offset.size(); ++d) {
    if (offset[d] == 0) continue;
    const bool divided = grid.extents()[d] > 1;
    if (!divided && !grid.periodic()[d]) return false;
    crossing = crossing || divided;
  }
  return crossing;
}

bool all_wide(const Offset& offset, const std::vector<bool>& wide) {
  for (std::size_t d = 0; d < offset.size(); ++d) {
    if (offset[d] != 0 && !wide[d]) return false;
  }
  return true;
}

// Base-3 code of an offset, to find the number of the opposite direction.
std::size_t code(const Offset& offset) {
  std::size_t out = 0;
  for (int step : offset) out = out * 3 + static_cast<std::size_t>(step + 1);
  return out;
}

}  // namespace

Links links(const CartesianGrid& grid, Corners corners, const std::vector<bool>& wide) {
  const auto dimensions = static_cast<std::size_t>(grid.dimensions());
  std::vector<Offset> offsets = face_offsets(dimensions);
  if (corners == Corners::yes) append_corners(offsets, dimensions);
  Links out;
  std::vector<int> numbers(729, -1);  // 3^6 codes
  for (const Offset& offset : offsets) {
    if (all_wide(offset, wide) && crosses(grid, offset)) numbers[code(offset)] = out.directions++;
  }
  for (const Offset& offset : offsets) {
    const int peer = grid.neighbour(offset);
    if (peer < 0 || !all_wide(offset, wide)) continue;
    out.present.push_back({offset, peer, peer == grid.rank(), numbers[code(offset)],
                           numbers[code(opposite(offset))]});
  }
  return out;
}

std::vector<int> opposite(std::vector<int> offset) {
  for (int& step : offset) step = -step;
  return offset;
}

std::size_t face_index(const std::vector<int>& offset) {
  std::size_t d = 0;
  while (offset[d] == 0) ++d;
  return 2 * d + (offset[d] > 0 ? 0 : 1);
}

int face_neighbour(const CartesianGrid& grid, std::size_t index) {
  return grid.neighbour(static_cast<int>(index / 2), index % 2 == 0 ? 1 : -1);
}

std::string describe(const std::vector<int>& offset) {
  if (nonzero(offset) == 1) {
    const auto at = std::find_if(offset.begin(), offset.end(), [](int step) { return step != 0; });
    return std::string("towards ") + (*at > 0 ? "+" : "-") + " of dimension " +
           std::to_string(at - offset.begin());
  }
  std::string out;
  for (int step : offset) out += (out.empty() ? "towards offset (" : ",") + std::to_string(step);
  return out + ")";
}

}  // namespace ropewalk::halo
