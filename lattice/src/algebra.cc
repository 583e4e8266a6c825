#include "algebra.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <type_traits>

#include "shared.hpp"

namespace ropewalk::lattice::detail {

namespace {

constexpr std::size_t spinors_a_piece = 32;  // 12 to 48 KiB: small fields still make several

// In so many sums that no addition waits for the one before it. `count` is a multiple of them.
template <class Real>
double squares_in_double(const Real* v, std::size_t count) {
  std::array<double, 8> sums{};
  for (std::size_t k = 0; k < count; k += sums.size()) {
    for (std::size_t n = 0; n < sums.size(); ++n) {
      const auto number = static_cast<double>(v[k + n]);
      sums[n] += number * number;
    }
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

template <class Real>
Algebra<Real>::Algebra(const Layout& layout, int threads)
    : kernels_(kernels::local_table<Real>(layout.lanes())),
      team_(shared_team(layout.lattice(), threads)),
      piece_(spinors_a_piece * kernels::spinor_reals * static_cast<std::size_t>(layout.lanes())),
      sums_(layout.vector_sites() * static_cast<std::size_t>(layout.inner()) / spinors_a_piece + 1),
      imaginary_sums_(sums_.size()) {}

template <class Real>
template <class Piece>
double Algebra<Real>::sum(std::size_t size, const Piece& piece) {
  const std::size_t pieces = (size + piece_ - 1) / piece_;
  const auto threads = static_cast<std::size_t>(team_->size());
  team_->run([&](int thread) {
    const auto t = static_cast<std::size_t>(thread);
    for (std::size_t k = pieces * t / threads; k < pieces * (t + 1) / threads; ++k) {
      sums_[k] = piece(k * piece_, std::min(piece_, size - k * piece_));
    }
  });
  double out = 0;
  for (std::size_t k = 0; k < pieces; ++k) out += sums_[k];
  return out;
}

template <class Real>
double Algebra<Real>::norm2(const SpinorField<Real>& v) {
  return sum(v.size(), [&](std::size_t first, std::size_t count) {
    return kernels_.norm2(v.data() + first, count);
  });
}

template <class Real>
double Algebra<Real>::norm2_in_double(const SpinorField<Real>& v) {
  if constexpr (std::is_same_v<Real, double>) return norm2(v);
  return sum(v.size(), [&](std::size_t first, std::size_t count) {
    return squares_in_double(v.data() + first, count);
  });
}

template <class Real>
double Algebra<Real>::residual(SpinorField<Real>& r, const SpinorField<Real>& b) {
  return sum(r.size(), [&](std::size_t first, std::size_t count) {
    return kernels_.residual(r.data() + first, b.data() + first, count);
  });
}

template <class Real>
double Algebra<Real>::subtract(SpinorField<Real>& r, double a, const SpinorField<Real>& q) {
  return sum(r.size(), [&](std::size_t first, std::size_t count) {
    return kernels_.subtract(r.data() + first, q.data() + first, static_cast<Real>(a), count);
  });
}

template <class Real>
void Algebra<Real>::advance(SpinorField<Real>& x, double a, SpinorField<Real>& p,
                            const SpinorField<Real>& s, double b) {
  sum(x.size(), [&](std::size_t first, std::size_t count) {
    kernels_.advance(x.data() + first, p.data() + first, s.data() + first, static_cast<Real>(a),
                     static_cast<Real>(b), count);
    return 0.0;
  });
}

template <class Real>
void Algebra<Real>::add_scaled(SpinorField<Real>& x, double a, const SpinorField<Real>& p) {
  sum(x.size(), [&](std::size_t first, std::size_t count) {
    kernels_.add_scaled(x.data() + first, p.data() + first, static_cast<Real>(a), count);
    return 0.0;
  });
}

template <class Real>
void Algebra<Real>::multiply(SpinorField<Real>& x, double a) {
  sum(x.size(), [&](std::size_t first, std::size_t count) {
    kernels_.multiply(x.data() + first, static_cast<Real>(a), count);
    return 0.0;
  });
}

template <class Real>
std::complex<double> Algebra<Real>::dot(const SpinorField<Real>& a, const SpinorField<Real>& b) {
  const double real = sum(a.size(), [&](std::size_t first, std::size_t count) {
    double sums[2];
    kernels_.dot(a.data() + first, b.data() + first, count, sums);
    imaginary_sums_[first / piece_] = sums[1];
    return sums[0];
  });
  double imaginary = 0;
  const std::size_t pieces = (a.size() + piece_ - 1) / piece_;
  for (std::size_t k = 0; k < pieces; ++k) imaginary += imaginary_sums_[k];
  return {real, imaginary};
}

template <class Real>
void Algebra<Real>::add_complex(SpinorField<Real>& x, std::complex<double> a,
                                const SpinorField<Real>& p) {
  sum(x.size(), [&](std::size_t first, std::size_t count) {
    kernels_.add_complex(x.data() + first, p.data() + first, static_cast<Real>(a.real()),
                         static_cast<Real>(a.imag()), count);
    return 0.0;
  });
}

template <class Real>
void Algebra<Real>::turn(SpinorField<Real>& p, std::complex<double> a, const SpinorField<Real>& r) {
  sum(p.size(), [&](std::size_t first, std::size_t count) {
    kernels_.turn(p.data() + first, r.data() + first, static_cast<Real>(a.real()),
                  static_cast<Real>(a.imag()), count);
    return 0.0;
  });
}

template class Algebra<float>;
template class Algebra<double>;

}  // namespace ropewalk::lattice::detail
