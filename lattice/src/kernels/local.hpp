// Kernels that stay on a site: sums of fields, and the blocks of the clover term. Chosen with the
// hop's (kernels.hpp), whose order of numbers they share.
#pragma once

#include <cstddef>

namespace ropewalk::lattice::kernels {

inline constexpr int spinor_reals = 24;

// A Hermitian 6 x 6 matrix a chirality: [6] diagonal, then [15] complex numbers below it, row by
// row: (1,0), (2,0), (2,1), (3,0), ...
inline constexpr int block_reals = 36;
inline constexpr int clover_reals = 2 * block_reals;

// `count` is in Reals, a multiple of spinor_reals times lanes. Sums are of double precision from
// one spinor to the next.
template <class Real>
struct LocalTable {
  int lanes;
  // out = blocks in, for vector sites begin to end. `out` may be `in`.
  void (*clover)(const Real* blocks, const Real* in, Real* out, std::ptrdiff_t begin,
                 std::ptrdiff_t end);
  // r -= a q; returns |r|^2.
  double (*subtract)(Real* r, const Real* q, Real a, std::size_t count);
  // x += a p, p = s + b p
  void (*advance)(Real* x, Real* p, const Real* s, Real a, Real b, std::size_t count);
  // x += a p
  void (*add_scaled)(Real* x, const Real* p, Real a, std::size_t count);
  // x *= a
  void (*multiply)(Real* x, Real a, std::size_t count);
  // r = b - r; returns |r|^2.
  double (*residual)(Real* r, const Real* b, std::size_t count);
  double (*norm2)(const Real*, std::size_t count);
  // Sums of conjugate(a) b, real and imaginary part.
  void (*dot)(const Real* a, const Real* b, std::size_t count, double* sums);
  // x += a p, with the complex number a.
  void (*add_complex)(Real* x, const Real* p, Real re, Real im, std::size_t count);
  // p = r + a p, likewise.
  void (*turn)(Real* p, const Real* r, Real re, Real im, std::size_t count);
};

// For the same instruction set as table<Real>(lanes).
template <class Real>
const LocalTable<Real>& local_table(int lanes);

}  // namespace ropewalk::lattice::kernels
