#include "stencil/block.hpp"

#include <fmt/format.h>

namespace ropewalk::bench {
namespace {

constexpr double share_of_neighbours = 0.125;  // a power of two: results are exact
constexpr double nowhere = -1;                 // no cell's value

double combined(double middle, double neighbours) {
  return middle + share_of_neighbours * (neighbours - 6 * middle);
}

}  // namespace

StencilBlock::StencilBlock(const CartesianGrid& grid, int edge, bool in_arena)
    : grid_(grid), edge_(edge) {
  const std::size_t count = index(edge + 1, edge + 1, edge + 1) + 1;
  if (in_arena) {
    mapped_ = Buffer<double>(count);
    cells_ = {mapped_.data(), count};
  } else {
    private_.resize(count);
    cells_ = private_;
  }
  results_ = Buffer<double>(count);
}

std::size_t StencilBlock::face_bytes() const noexcept {
  return static_cast<std::size_t>(edge_) * static_cast<std::size_t>(edge_) * sizeof(double);
}

Field StencilBlock::field() const {
  const auto edge = static_cast<std::size_t>(edge_);
  return {cells_.data(), sizeof(double), {edge, edge, edge}, {1, 1, 1}};
}

int StencilBlock::place_of(std::size_t d, int at) const noexcept {
  const int place = grid_.coordinates()[d] * edge_ + at - 1;
  const int all = grid_.extents()[d] * edge_;
  return grid_.periodic()[d] ? (place + all) % all : place;
}

bool StencilBlock::inside(int x, int y, int z) const noexcept {
  const std::array<int, 3> at{x, y, z};
  for (std::size_t d = 0; d < 3; ++d) {
    const int place = place_of(d, at[d]);
    if (place < 0 || place >= grid_.extents()[d] * edge_) return false;
  }
  return true;
}

// Small whole numbers, so that sums of seven are exact, whatever their order.
double StencilBlock::value_at(int x, int y, int z, std::uint64_t serial) const noexcept {
  if (!inside(x, y, z)) return 0;
  const auto place = [&](std::size_t d, int at) {
    return static_cast<std::uint64_t>(place_of(d, at)) + 1;
  };
  const std::uint64_t mixed = place(0, x) * 7919 + place(1, y) * 104729 + place(2, z) * 1299709;
  return static_cast<double>((mixed + serial * 31) % 4093);
}

double StencilBlock::updated_at(int x, int y, int z, std::uint64_t serial) const noexcept {
  const auto value = [&](int dx, int dy, int dz) {
    return value_at(x + dx, y + dy, z + dz, serial);
  };
  const double neighbours = value(-1, 0, 0) + value(1, 0, 0) + value(0, -1, 0) + value(0, 1, 0) +
                            value(0, 0, -1) + value(0, 0, 1);
  return combined(value(0, 0, 0), neighbours);
}

void StencilBlock::fill(std::uint64_t serial) {
  for (int x = 0; x <= edge_ + 1; ++x) {
    for (int y = 0; y <= edge_ + 1; ++y) {
      for (int z = 0; z <= edge_ + 1; ++z) {
        const auto own = [&](int at) { return at >= 1 && at <= edge_; };
        const bool ghost = !own(x) || !own(y) || !own(z);
        cells_[index(x, y, z)] =
            ghost ? (inside(x, y, z) ? nowhere : 0) : value_at(x, y, z, serial);
        results_[index(x, y, z)] = nowhere;
      }
    }
  }
}

void StencilBlock::update(std::array<int, 3> begin, std::array<int, 3> end) {
  const auto line = static_cast<std::ptrdiff_t>(index(0, 1, 0));
  const auto plane = static_cast<std::ptrdiff_t>(index(1, 0, 0));
  for (int x = begin[0]; x < end[0]; ++x) {
    for (int y = begin[1]; y < end[1]; ++y) {
      const double* in = cells_.data() + index(x, y, 0);
      double* out = results_.data() + index(x, y, 0);
      for (std::ptrdiff_t z = begin[2]; z < end[2]; ++z) {
        const double neighbours =
            in[z - plane] + in[z + plane] + in[z - line] + in[z + line] + in[z - 1] + in[z + 1];
        out[z] = combined(in[z], neighbours);
      }
    }
  }
}

void StencilBlock::update_part(std::array<int, 3> begin, std::array<int, 3> end, int worker,
                               int workers) {
  const std::size_t d = end[0] - begin[0] > 1 ? 0 : 1;
  const int first = begin[d];
  const int count = end[d] - first;
  begin[d] = first + count * worker / workers;
  end[d] = first + count * (worker + 1) / workers;
  update(begin, end);
}

void StencilBlock::update_all(int worker, int workers) {
  update_part({1, 1, 1}, {edge_ + 1, edge_ + 1, edge_ + 1}, worker, workers);
}

void StencilBlock::update_interior(int worker, int workers) {
  update_part({2, 2, 2}, {edge_, edge_, edge_}, worker, workers);
}

// Six slabs that do not overlap.
void StencilBlock::update_boundary(int worker, int workers) {
  const int end = edge_ + 1;
  update_part({1, 1, 1}, {2, end, end}, worker, workers);
  update_part({edge_, 1, 1}, {end, end, end}, worker, workers);
  update_part({2, 1, 1}, {edge_, 2, end}, worker, workers);
  update_part({2, edge_, 1}, {edge_, end, end}, worker, workers);
  update_part({2, 2, 1}, {edge_, edge_, 2}, worker, workers);
  update_part({2, 2, edge_}, {edge_, edge_, end}, worker, workers);
}

// The ghosts of the six faces, without edges and corners, which the stencil does not read.
template <class Visit>
void StencilBlock::for_each_face_cell(const Visit& visit) const {
  for (int a = 1; a <= edge_; ++a) {
    for (int b = 1; b <= edge_; ++b) {
      for (const int side : {0, edge_ + 1}) {
        visit(side, a, b);
        visit(a, side, b);
        visit(a, b, side);
      }
    }
  }
}

std::string StencilBlock::check(std::uint64_t serial, bool updated) const {
  std::string wrong;
  const auto expect = [&](const char* what, int x, int y, int z, double found, double wanted) {
    if (found == wanted || !wrong.empty()) return;
    wrong = fmt::format("rank {}: {} at ({}, {}, {}) is {}, expected {}", grid_.rank(), what, x, y,
                        z, found, wanted);
  };
  for_each_face_cell([&](int x, int y, int z) {
    expect("ghost", x, y, z, cells_[index(x, y, z)], value_at(x, y, z, serial));
  });
  for (int x = 1; updated && x <= edge_; ++x) {
    for (int y = 1; y <= edge_; ++y) {
      for (int z = 1; z <= edge_; ++z) {
        expect("result", x, y, z, results_[index(x, y, z)], updated_at(x, y, z, serial));
      }
    }
  }
  return wrong;
}

}  // namespace ropewalk::bench
