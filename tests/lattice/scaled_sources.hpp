// Solutions in single precision for sources from 1e-30 to 1e30, whose squares it has not.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "lattice/proof_tools.hpp"
#include "ropewalk/lattice/conjugate_gradient.hpp"

namespace ropewalk::lattice::test {

inline Numbers times(Numbers a, double factor) {
  for (std::complex<double>& number : a) number *= factor;
  return a;
}

// Solves by solve(x, b) at each scale; |b - M x| / |b| in double, by `exact`, is what the solution
// reports, and as small as the tolerance says.
template <class Single, class Double, class Solve>
void expect_solutions_at_any_scale(Single& op, Double& exact, double tolerance, Solve solve) {
  const Numbers source = random_spinor(op.lattice(), 57);
  const auto in_double = [&](const SpinorField<float>& field) {
    Numbers out(source.size());
    field.export_to(out.data());
    return out;
  };
  for (const double scale : {1e-30, 1e-20, 1.0, 1e19, 1e30}) {
    const SpinorField<float> b = imported<float>(op.field(), times(source, scale));
    SpinorField<float> x = op.field();
    const Solution found = solve(x, b);
    // In units of the scale, in which nothing here is out of range.
    SpinorField<double> y = imported<double>(exact.field(), times(in_double(x), 1 / scale));
    SpinorField<double> m_y = exact.field();
    exact.apply(m_y, y);
    const Numbers b_there = times(in_double(b), 1 / scale);
    const double rest =
        std::sqrt(reference::norm2(add(b_there, -1, exported(m_y))) / reference::norm2(b_there));
    EXPECT_NEAR(rest, found.residual, 0.3 * tolerance) << "at " << scale;
    EXPECT_LE(rest, 10 * tolerance) << "at " << scale;
    EXPECT_GT(found.iterations, 1) << "at " << scale;
    EXPECT_EQ(found.history.size(), static_cast<std::size_t>(found.iterations));
  }
}

}  // namespace ropewalk::lattice::test
