#include "fft/measure.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "common/timed_threads.hpp"
#include "fft/values.hpp"

namespace ropewalk::bench {
namespace {

constexpr double sample_us = 20000;
constexpr double quick_sample_us = 5000;
constexpr int most_iterations = 1000;
// What is assumed when the time is announced: microseconds of a cell in a step, and of a cell that
// is filled and checked.
constexpr double usual_cell_us = 0.05;
constexpr double usual_checked_cell_us = 0.03;

int rounds(const FftOptions& options) { return options.common.rounds_or(15, 5); }
double full_sample_us(const FftOptions& options) {
  return options.common.quick ? quick_sample_us : sample_us;
}

struct Column {
  FftTimes times;
  std::unique_ptr<DistributedFft> fft;
};

// The samples of one case.
class FftSamples {
 public:
  FftSamples(const FftOptions& options, const Ranks& ranks, const LineLibrary& library,
             ThreadTeam& team, const FftCase& one)
      : ranks_(ranks), team_(team), case_(one), rank_grid_(ranks.communicator(), one) {
    for (const std::string& way : options.way_list) {
      columns_.push_back(
          {{way}, std::make_unique<DistributedFft>(way, one, rank_grid_, library, team)});
    }
  }

  std::vector<Column>& columns() { return columns_; }
  const std::string& wrong() const { return wrong_; }
  const DividedGrid& grid() const { return rank_grid_.grid(); }

  void check_serially();
  void calibrate(Column& column, double wanted_us);
  void sample(Column& column);

 private:
  // {total, transposes, local} of a step, of the slowest rank.
  std::vector<double> steps(Column& column, int iterations) const;
  void note(const Column& column, const std::string& wrong);

  const Ranks& ranks_;
  ThreadTeam& team_;
  FftCase case_;
  FftRanks rank_grid_;
  std::vector<Column> columns_;
  std::uint64_t serial_ = 0;
  std::string wrong_;
};

void FftSamples::note(const Column& column, const std::string& wrong) {
  if (wrong.empty() || !wrong_.empty()) return;
  wrong_ = "rank " + std::to_string(ranks_.rank()) + ", " + column.times.way + ": " + wrong;
}

void FftSamples::check_serially() {
  const SerialTransform serial(case_, team_);
  for (Column& column : columns_) {
    serial.fill(grid(), *column.fft);
    column.fft->forward();
    note(column, serial.check(grid(), *column.fft));
  }
}

std::vector<double> FftSamples::steps(Column& column, int iterations) const {
  DistributedFft& fft = *column.fft;
  fft.reset_shares();
  ranks_.barrier();
  const double begin = now_us();
  for (int i = 0; i < iterations; ++i) {
    fft.forward();
    fft.backward();
  }
  std::vector<double> all{now_us() - begin, fft.shares().transposes, fft.shares().local};
  for (double& one : all) one /= iterations;
  return ranks_.slowest(all);
}

void FftSamples::calibrate(Column& column, double wanted_us) {
  const double each = steps(column, 1)[0];
  column.times.iterations = std::clamp(static_cast<int>(wanted_us / each), 1, most_iterations);
}

// The checked step before the samples brings back what other columns have put out of the caches.
void FftSamples::sample(Column& column) {
  const PlaneWave wave(case_, ++serial_);
  wave.fill(grid(), *column.fft);
  column.fft->forward();
  note(column, wave.check_coefficients(grid(), *column.fft));
  column.fft->backward();
  const std::vector<double> us = steps(column, column.times.iterations);
  note(column, wave.check_values(grid(), *column.fft));
  column.times.us.push_back(us[0]);
  column.times.transposes_us.push_back(us[1]);
  column.times.local_us.push_back(us[2]);
}

// Of this rank, there and back.
double bytes_sent(const DividedGrid& grid) {
  std::size_t cells = 0;
  for (const auto& [from, to] : {std::array{2, 1}, {1, 0}, {0, 1}, {1, 2}}) {
    const TransposeShape shape = transpose_shape(grid, from, to);
    const auto self = static_cast<std::size_t>(exchanging_dimension(from, to));
    for (const GridBox& box : shape.sent) cells += volume(box.count);
    cells -= volume(shape.sent[static_cast<std::size_t>(grid.place[self])].count);
  }
  return static_cast<double>(cells * sizeof(Complex));
}

}  // namespace

Expected expected(const FftOptions& options, const FftCase& one) {
  const double cell_us = usual_cell_us + usual_checked_cell_us;
  return sampling(static_cast<double>(options.way_list.size()), rounds(options),
                  full_sample_us(options), cell_us * static_cast<double>(volume(one.cells)));
}

FftResult measure(const FftOptions& options, const Ranks& ranks, const Budget& budget,
                  const LineLibrary& library, ThreadTeam& team, const FftCase& one) {
  FftSamples samples(options, ranks, library, team, one);
  FftResult result;
  result.measured = one;
  result.is_serial_checked = volume(one.cells) <= most_serial_cells;
  if (result.is_serial_checked) samples.check_serially();
  std::vector<Column>& columns = samples.columns();
  const double least = least_samples(static_cast<double>(columns.size()));
  const double wanted_us = budget.sample_us(full_sample_us(options), least);
  for (Column& column : columns) samples.calibrate(column, wanted_us);
  int wanted = rounds(options);
  const double begun = now_us();
  for (int round = 0; round < wanted; ++round) {
    if (round == 1) wanted = budget.rounds(wanted, now_us() - begun);
    // Each round begins with another column, so that none always follows the same one.
    for (std::size_t i = 0; i < columns.size(); ++i) {
      samples.sample(columns[(i + static_cast<std::size_t>(round)) % columns.size()]);
    }
  }
  const DistributedFft& fft = *columns.front().fft;
  const std::size_t bytes = volume(samples.grid().box(2).count) * sizeof(Complex);
  result.backing = backing_of("arena", fft.values(), bytes);
  result.bytes = ranks.sum(bytes_sent(samples.grid()));
  for (Column& column : columns) result.times.push_back(std::move(column.times));
  result.wrong = ranks.first_text(samples.wrong());
  return result;
}

}  // namespace ropewalk::bench
