// Matrices of SU(3), as gauge links are: nine complex numbers, row by row.
#pragma once

#include <array>
#include <complex>

namespace ropewalk::lattice {

using Su3 = std::array<std::complex<double>, 9>;

Su3 su3_identity();
Su3 multiply(const Su3&, const Su3&);
Su3 adjoint(const Su3&);
std::complex<double> trace(const Su3&);
std::complex<double> determinant(const Su3&);

// The third row of a matrix of SU(3) from the first two: the conjugate of their cross product.
void complete_third_row(Su3&);

// The nearest by Gram-Schmidt: first row to unit length, second orthogonal to it, third completed.
void reunitarise(Su3&);

// Returns the largest |element| of U U^+ - 1, and of det U - 1.
double unitarity_error(const Su3&);

// exp(A) for a traceless anti-Hermitian A: in SU(3) to rounding.
Su3 exponential(const Su3& anti_hermitian);

}  // namespace ropewalk::lattice
