// Fourier transforms of all lines of an array along one axis, dealt to threads.
// Forward is exp(-2 pi i j k / n); backward is its inverse, divided by n.
#pragma once

#include <cstddef>
#include <memory>

#include "fft/grid.hpp"
#include "fft/plans.hpp"
#include "ropewalk/schedule.hpp"

namespace ropewalk::bench {

// The arrays that are passed have the extents that are given here, the last axis fastest.
class AxisTransform {
 public:
  AxisTransform(const LineLibrary& library, ThreadTeam& team, const Triple& extents, int axis);
  ~AxisTransform();
  AxisTransform(const AxisTransform&) = delete;
  AxisTransform& operator=(const AxisTransform&) = delete;

  void forward(Complex* array);  // in place, and so is backward()
  void backward(Complex* array);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Lines of `length` real numbers one behind the other, and the first length / 2 + 1 coefficients of
// each; the others are their conjugates.
class RealTransform {
 public:
  RealTransform(const LineLibrary& library, ThreadTeam& team, std::size_t lines, int length);
  ~RealTransform();
  RealTransform(const RealTransform&) = delete;
  RealTransform& operator=(const RealTransform&) = delete;

  void forward(const double* values, Complex* coefficients);
  void backward(const Complex* coefficients, double* values);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ropewalk::bench
