// Vector algebra of the solvers, by the threads of the lattice. The memory bounds it: what can be
// done in one pass over the numbers is.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/local.hpp"
#include "ropewalk/lattice/fields.hpp"
#include "ropewalk/schedule.hpp"

namespace ropewalk::lattice::detail {

// Sums are of this rank, over pieces of a size that does not depend on the threads, in order: the
// same bits for the same layout.
template <class Real>
class Algebra {
 public:
  Algebra(const Layout&, int threads);  // collective, inside of collectively()

  double norm2(const SpinorField<Real>&);
  // The same of numbers whose squares Real has not; slower, for once a solution.
  double norm2_in_double(const SpinorField<Real>&);
  double residual(SpinorField<Real>& r, const SpinorField<Real>& b);            // r = b - r; |r|^2
  double subtract(SpinorField<Real>& r, double a, const SpinorField<Real>& q);  // r -= a q; |r|^2
  // x += a p, then p = s + b p
  void advance(SpinorField<Real>& x, double a, SpinorField<Real>& p, const SpinorField<Real>& s,
               double b);
  void add_scaled(SpinorField<Real>& x, double a, const SpinorField<Real>& p);       // x += a p
  void multiply(SpinorField<Real>& x, double a);                                     // x *= a
  std::complex<double> dot(const SpinorField<Real>& a, const SpinorField<Real>& b);  // a^+ b
  void add_complex(SpinorField<Real>& x, std::complex<double> a, const SpinorField<Real>& p);
  // p = r + a p
  void turn(SpinorField<Real>& p, std::complex<double> a, const SpinorField<Real>& r);

 private:
  // piece(first number, numbers) for all pieces; the sum of what they return.
  template <class Piece>
  double sum(std::size_t size, const Piece& piece);

  const kernels::LocalTable<Real>& kernels_;
  std::shared_ptr<ThreadTeam> team_;
  std::size_t piece_;         // numbers
  std::vector<double> sums_;  // of the pieces of a whole field
  std::vector<double> imaginary_sums_;
};

extern template class Algebra<float>;
extern template class Algebra<double>;

}  // namespace ropewalk::lattice::detail
