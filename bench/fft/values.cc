#include "fft/values.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace ropewalk::bench {
namespace {

// Rounding, for each cell of the grid. A value that is missing or misplaced changes coefficients by
// about 1, a coefficient that is misplaced changes values by more.
constexpr double rounding_of_cell = 1e-12;
constexpr double rounding_of_value = 1e-10;

std::uint64_t mixed(std::uint64_t bits) {  // the finalizer of SplitMix64
  bits += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

// In [-1, 1).
double random_number(std::uint64_t seed) {
  return static_cast<double>(static_cast<std::int64_t>(mixed(seed))) * 0x1p-63;
}

std::size_t place_in(const Triple& extents, const Triple& at) {
  return line_place(extents, {{0, 0, at[2]}, {}}, at[0], at[1]);
}

// Calls visit(place in the grid, place in the array) for each cell of a box.
template <class Visit>
void for_each_cell(const GridBox& box, const Visit& visit) {
  std::size_t place = 0;
  for (int x = 0; x < box.count[0]; ++x) {
    for (int y = 0; y < box.count[1]; ++y) {
      for (int z = 0; z < box.count[2]; ++z) {
        visit(Triple{box.first[0] + x, box.first[1] + y, box.first[2] + z}, place++);
      }
    }
  }
}

// The box of the numbers that are transformed. Real ones are more than their coefficients.
GridBox values_box(const FftCase& one, const DividedGrid& grid) {
  GridBox box = grid.box(2);
  box.count[2] = one.cells[2];
  return box;
}

template <class Value>
void fill_values(const FftCase& one, const DividedGrid& grid, const DistributedFft& fft,
                 const Value& value) {
  for_each_cell(values_box(one, grid), [&](const Triple& at, std::size_t place) {
    const Complex number = value(at);
    if (one.is_real) {
      fft.real_values()[place] = number.real();
    } else {
      fft.values()[place] = number;
    }
  });
}

// Collects the first difference between what an array holds and what it should.
class FirstDifference {
 public:
  FirstDifference(const char* what, double allowed) : what_(what), allowed_(allowed) {}
  void compare(const Triple& at, Complex found, Complex wanted) {
    if (std::abs(found - wanted) <= allowed_ || !text_.empty()) return;
    text_ = fmt::format("{} ({}, {}, {}) is {} + {}i, expected {} + {}i", what_, at[0], at[1],
                        at[2], found.real(), found.imag(), wanted.real(), wanted.imag());
  }
  const std::string& text() const noexcept { return text_; }

 private:
  const char* what_;
  double allowed_;
  std::string text_;
};

template <class Wanted>
std::string coefficient_difference(const FftCase& one, const DividedGrid& grid,
                                   const DistributedFft& fft, const Wanted& wanted) {
  FirstDifference difference("coefficient",
                             rounding_of_cell * static_cast<double>(volume(one.cells)));
  for_each_cell(grid.box(0), [&](const Triple& at, std::size_t place) {
    difference.compare(at, fft.coefficients()[place], wanted(at));
  });
  return difference.text();
}

}  // namespace

PlaneWave::PlaneWave(const FftCase& one, std::uint64_t serial) : case_(one) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const int cells = one.cells[axis];
    numbers_[axis] = static_cast<int>(mixed(3 * serial + axis) % static_cast<std::uint64_t>(cells));
    for (int at = 0; at < cells; ++at) {
      const auto turn = static_cast<double>(static_cast<std::int64_t>(numbers_[axis]) * at % cells);
      phases_[axis].push_back(std::polar(1.0, 2 * std::numbers::pi * turn / cells));
    }
  }
}

Complex PlaneWave::value(const Triple& at) const {
  const auto phase = [&](std::size_t axis) {
    return phases_[axis][static_cast<std::size_t>(at[axis])];
  };
  const Complex value = phase(0) * phase(1) * phase(2);
  return case_.is_real ? value.real() : value;
}

// A real wave is half the sum of the waves of k and of -k.
Complex PlaneWave::coefficient(const Triple& at) const {
  bool is_wave = true;
  bool is_opposite = true;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    is_wave = is_wave && at[axis] == numbers_[axis];
    is_opposite = is_opposite && (at[axis] + numbers_[axis]) % case_.cells[axis] == 0;
  }
  const auto cells = static_cast<double>(volume(case_.cells));
  if (!case_.is_real) return is_wave ? cells : 0;
  return cells / 2 * ((is_wave ? 1 : 0) + (is_opposite ? 1 : 0));
}

void PlaneWave::fill(const DividedGrid& grid, const DistributedFft& fft) const {
  fill_values(case_, grid, fft, [&](const Triple& at) { return value(at); });
}

std::string PlaneWave::check_values(const DividedGrid& grid, const DistributedFft& fft) const {
  FirstDifference difference("value", rounding_of_value);
  for_each_cell(values_box(case_, grid), [&](const Triple& at, std::size_t place) {
    const Complex found = case_.is_real ? Complex(fft.real_values()[place]) : fft.values()[place];
    difference.compare(at, found, value(at));
  });
  return difference.text();
}

std::string PlaneWave::check_coefficients(const DividedGrid& grid,
                                          const DistributedFft& fft) const {
  return coefficient_difference(case_, grid, fft,
                                [&](const Triple& at) { return coefficient(at); });
}

namespace {

Complex random_value(const FftCase& one, const Triple& at) {
  const std::uint64_t place = place_in(one.cells, at);
  return {random_number(2 * place), one.is_real ? 0 : random_number(2 * place + 1)};
}

}  // namespace

SerialTransform::SerialTransform(const FftCase& one, ThreadTeam& team) : case_(one) {
  coefficients_.resize(volume(one.cells));
  for_each_cell({{0, 0, 0}, one.cells}, [&](const Triple& at, std::size_t place) {
    coefficients_[place] = random_value(one, at);
  });
  const LineLibrary library;
  for (int axis = 0; axis < 3; ++axis) {
    AxisTransform(library, team, one.cells, axis).forward(coefficients_.data());
  }
}

void SerialTransform::fill(const DividedGrid& grid, const DistributedFft& fft) const {
  fill_values(case_, grid, fft, [&](const Triple& at) { return random_value(case_, at); });
}

std::string SerialTransform::check(const DividedGrid& grid, const DistributedFft& fft) const {
  return coefficient_difference(
      case_, grid, fft, [&](const Triple& at) { return coefficients_[place_in(case_.cells, at)]; });
}

}  // namespace ropewalk::bench
