#include "fft/distributed.hpp"

#include "common/timed_threads.hpp"

namespace ropewalk::bench {
namespace {

DividedGrid divided(Communicator all, const FftCase& one) {
  DividedGrid grid{one.cells, one.ranks, {}};
  if (one.is_real) grid.cells[2] = one.cells[2] / 2 + 1;
  grid.place = {all.rank() / one.ranks[1], all.rank() % one.ranks[1]};
  return grid;
}

}  // namespace

FftRanks::FftRanks(Communicator all, const FftCase& one)
    : grid_(divided(all, one)),
      first_(all, grid_.place[1], grid_.place[0]),
      second_(all, grid_.place[0], grid_.place[1]) {}

DistributedFft::DistributedFft(const std::string& way, const FftCase& one, const FftRanks& ranks,
                               const LineLibrary& library, ThreadTeam& team)
    : forward_{transpose(way, ranks, 2, 1), transpose(way, ranks, 1, 0)},
      backward_{transpose(way, ranks, 0, 1), transpose(way, ranks, 1, 2)} {
  const DividedGrid& grid = ranks.grid();
  const Triple values = grid.box(2).count;
  if (!backward_[0] && !backward_[1]) alone_ = Buffer<Complex>(volume(values));
  Complex* array = alone_.data();
  for (const auto& one_transpose : backward_) {
    if (one_transpose) array = one_transpose->data();
  }
  for (int axis = 2; axis >= 0; --axis) {
    if (axis < 2 && forward_[1 - axis]) array = forward_[1 - axis]->data();
    arrays_[axis] = array;
    if (axis == 2 && one.is_real) continue;
    lines_[axis] = std::make_unique<AxisTransform>(library, team, grid.box(axis).count, axis);
  }
  if (!one.is_real) return;
  const std::size_t lines =
      static_cast<std::size_t>(values[0]) * static_cast<std::size_t>(values[1]);
  real_ = Buffer<double>(lines * static_cast<std::size_t>(one.cells[2]));
  real_lines_ = std::make_unique<RealTransform>(library, team, lines, one.cells[2]);
}

std::unique_ptr<FftTranspose> DistributedFft::transpose(const std::string& way,
                                                        const FftRanks& ranks, int from_axis,
                                                        int to_axis) {
  const int dimension = exchanging_dimension(from_axis, to_axis);
  if (ranks.grid().ranks[static_cast<std::size_t>(dimension)] == 1) return nullptr;
  return make_transpose(way, ranks.of(dimension),
                        transpose_shape(ranks.grid(), from_axis, to_axis));
}

template <class Work>
void DistributedFft::timed(double& share, const Work& work) {
  const double begin = now_us();
  work();
  share += now_us() - begin;
}

void DistributedFft::forward() {
  timed(shares_.local, [&] {
    if (real_lines_) {
      real_lines_->forward(real_.data(), arrays_[2]);
    } else {
      lines_[2]->forward(arrays_[2]);
    }
  });
  for (int axis = 1; axis >= 0; --axis) {
    FftTranspose* transpose = forward_[1 - axis].get();
    if (transpose != nullptr) timed(shares_.transposes, [&] { transpose->run(arrays_[axis + 1]); });
    timed(shares_.local, [&] { lines_[axis]->forward(arrays_[axis]); });
  }
}

void DistributedFft::backward() {
  Complex* array = arrays_[0];
  for (int axis = 0; axis < 2; ++axis) {
    timed(shares_.local, [&] { lines_[axis]->backward(array); });
    FftTranspose* transpose = backward_[axis].get();
    if (transpose == nullptr) continue;
    timed(shares_.transposes, [&] { transpose->run(array); });
    array = transpose->data();
  }
  timed(shares_.local, [&] {
    if (real_lines_) {
      real_lines_->backward(array, real_.data());
    } else {
      lines_[2]->backward(array);
    }
  });
}

}  // namespace ropewalk::bench
