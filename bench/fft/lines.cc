#include "fft/lines.hpp"

#include <algorithm>
#include <vector>

namespace ropewalk::bench {
namespace {

// Neighbouring lines that are copied together where they are not contiguous: a row of them is two
// cache lines.
constexpr std::size_t bundle = 8;

struct LineWorker {
  std::unique_ptr<LinePlan> plan;
  std::vector<Complex> in;
  std::vector<Complex> out;
};

// One for each thread, with memory for so many lines.
std::vector<LineWorker> workers(const LineLibrary& library, const ThreadTeam& team,
                                std::size_t length, std::size_t lines) {
  std::vector<LineWorker> all;
  all.reserve(static_cast<std::size_t>(team.size()));
  for (int thread = 0; thread < team.size(); ++thread) {
    all.push_back({library.plan(length), std::vector<Complex>(lines * length),
                   std::vector<Complex>(lines * length)});
  }
  return all;
}

// Calls visit(worker, first, last) on all threads, each with as large a part of 0 to `count`.
template <class Visit>
void deal(ThreadTeam& team, std::size_t count, const Visit& visit) {
  team.run([&](int thread) {
    const auto part = static_cast<std::size_t>(thread);
    const auto parts = static_cast<std::size_t>(team.size());
    visit(part, count * part / parts, count * (part + 1) / parts);
  });
}

}  // namespace

struct AxisTransform::State {
  void contiguous_line(LineWorker& worker, Complex* line, bool is_backward) const;
  void bundle_of_lines(LineWorker& worker, Complex* first, std::size_t width,
                       bool is_backward) const;
  void run(Complex* array, bool is_backward);

  ThreadTeam& team;
  std::size_t length;
  std::size_t outer;   // groups of lines, one behind the other
  std::size_t stride;  // from an element of a line to the next, and lines of a group
  std::vector<LineWorker> threads;
};

void AxisTransform::State::contiguous_line(LineWorker& worker, Complex* line,
                                           bool is_backward) const {
  if (!is_backward) {
    worker.plan->forward(line, worker.out.data());
    std::ranges::copy_n(worker.out.data(), static_cast<std::ptrdiff_t>(length), line);
    return;
  }
  worker.plan->backward(line, worker.out.data());
  const double scale = 1 / static_cast<double>(length);
  for (std::size_t k = 0; k < length; ++k) line[k] = worker.out[k] * scale;
}

void AxisTransform::State::bundle_of_lines(LineWorker& worker, Complex* first, std::size_t width,
                                           bool is_backward) const {
  for (std::size_t k = 0; k < length; ++k) {
    for (std::size_t i = 0; i < width; ++i) worker.in[i * length + k] = first[k * stride + i];
  }
  for (std::size_t i = 0; i < width; ++i) {
    const Complex* from = worker.in.data() + i * length;
    Complex* to = worker.out.data() + i * length;
    if (is_backward) {
      worker.plan->backward(from, to);
    } else {
      worker.plan->forward(from, to);
    }
  }
  const double scale = is_backward ? 1 / static_cast<double>(length) : 1;
  for (std::size_t k = 0; k < length; ++k) {
    for (std::size_t i = 0; i < width; ++i) {
      first[k * stride + i] = worker.out[i * length + k] * scale;
    }
  }
}

void AxisTransform::State::run(Complex* array, bool is_backward) {
  const std::size_t bundles = stride == 1 ? 1 : (stride + bundle - 1) / bundle;
  deal(team, outer * bundles, [&](std::size_t thread, std::size_t begin, std::size_t end) {
    for (std::size_t item = begin; item < end; ++item) {
      Complex* group = array + item / bundles * length * stride;
      const std::size_t line = item % bundles * bundle;
      if (stride == 1) {
        contiguous_line(threads[thread], group, is_backward);
      } else {
        bundle_of_lines(threads[thread], group + line, std::min(bundle, stride - line),
                        is_backward);
      }
    }
  });
}

AxisTransform::AxisTransform(const LineLibrary& library, ThreadTeam& team, const Triple& extents,
                             int axis) {
  const auto length = static_cast<std::size_t>(extents[static_cast<std::size_t>(axis)]);
  std::size_t outer = 1;
  std::size_t stride = 1;
  for (int other = 0; other < 3; ++other) {
    const auto cells = static_cast<std::size_t>(extents[static_cast<std::size_t>(other)]);
    if (other < axis) outer *= cells;
    if (other > axis) stride *= cells;
  }
  state_ = std::make_unique<State>(
      State{team, length, outer, stride, workers(library, team, length, stride == 1 ? 1 : bundle)});
}
AxisTransform::~AxisTransform() = default;
void AxisTransform::forward(Complex* array) { state_->run(array, false); }
void AxisTransform::backward(Complex* array) { state_->run(array, true); }

// Two real lines a and b are one complex line a + ib, Z its coefficients:
//   A[k] = (Z[k] + conj(Z[n - k])) / 2,  B[k] = (Z[k] - conj(Z[n - k])) / 2i
struct RealTransform::State {
  template <class Visit>
  void for_each_pair(const Visit& visit) {
    deal(team, (lines + 1) / 2, [&](std::size_t thread, std::size_t begin, std::size_t end) {
      for (std::size_t pair = begin; pair < end; ++pair) visit(threads[thread], 2 * pair);
    });
  }
  bool is_alone(std::size_t line) const { return line + 1 == lines; }

  ThreadTeam& team;
  std::size_t lines;
  std::size_t length;
  std::size_t half;  // coefficients of a line
  std::vector<LineWorker> threads;
};

RealTransform::RealTransform(const LineLibrary& library, ThreadTeam& team, std::size_t lines,
                             int length) {
  const auto n = static_cast<std::size_t>(length);
  state_ = std::make_unique<State>(State{team, lines, n, n / 2 + 1, workers(library, team, n, 1)});
}
RealTransform::~RealTransform() = default;

void RealTransform::forward(const double* values, Complex* coefficients) {
  const State& state = *state_;
  const std::size_t n = state.length;
  state_->for_each_pair([&](LineWorker& worker, std::size_t line) {
    const double* a = values + line * n;
    const double* b = state.is_alone(line) ? nullptr : a + n;
    for (std::size_t k = 0; k < n; ++k) worker.in[k] = {a[k], b != nullptr ? b[k] : 0};
    worker.plan->forward(worker.in.data(), worker.out.data());
    Complex* to = coefficients + line * state.half;
    for (std::size_t k = 0; k < state.half; ++k) {
      const Complex z = worker.out[k];
      const Complex mirrored = std::conj(worker.out[(n - k) % n]);
      to[k] = 0.5 * (z + mirrored);
      if (b != nullptr) to[state.half + k] = Complex(0, -0.5) * (z - mirrored);
    }
  });
}

void RealTransform::backward(const Complex* coefficients, double* values) {
  const State& state = *state_;
  const std::size_t n = state.length;
  const double scale = 1 / static_cast<double>(n);
  state_->for_each_pair([&](LineWorker& worker, std::size_t line) {
    const Complex* a = coefficients + line * state.half;
    const Complex* b = state.is_alone(line) ? nullptr : a + state.half;
    for (std::size_t k = 0; k < state.half; ++k) {
      const Complex times_i = b != nullptr ? Complex(-b[k].imag(), b[k].real()) : Complex(0);
      worker.in[(n - k) % n] = std::conj(a[k] - times_i);
      worker.in[k] = a[k] + times_i;
    }
    worker.plan->backward(worker.in.data(), worker.out.data());
    double* to = values + line * n;
    for (std::size_t k = 0; k < n; ++k) {
      to[k] = worker.out[k].real() * scale;
      if (b != nullptr) to[n + k] = worker.out[k].imag() * scale;
    }
  });
}

}  // namespace ropewalk::bench
