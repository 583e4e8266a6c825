#include "ropewalk/lattice/clover.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>

#include "agree.hpp"
#include "clover_blocks.hpp"
#include "hop.hpp"
#include "kernels/local.hpp"

namespace ropewalk::lattice {
namespace {

using kernels::block_reals;
using kernels::clover_reals;

// Writes a block into its lane, in the order of kernels/local.hpp; `to` points to that lane.
template <class Real>
void pack(Real* to, const Block& block, int lanes) {
  const auto put = [&](double value) {
    *to = static_cast<Real>(value);
    to += lanes;
  };
  for (std::size_t i = 0; i < 6; ++i) put(block[i * 6 + i].real());
  for (std::size_t i = 1; i < 6; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      put(block[i * 6 + j].real());
      put(block[i * 6 + j].imag());
    }
  }
}

int parity(const Lattice& lattice, const Extents& site) {
  int sum = 0;
  for (std::size_t d = 0; d < dimensions; ++d) sum += lattice.origin()[d] + site[d];
  return sum & 1;
}

template <class Real>
GaugeField<double> in_double(const GaugeField<Real>& gauge) {
  GaugeField<double> out(gauge.lattice());
  gauge.export_to(out.data());
  return out;
}

[[noreturn]] void refuse(const Lattice& lattice, Extents site, double mass, double csw) {
  for (std::size_t d = 0; d < dimensions; ++d) site[d] += lattice.origin()[d];
  throw Error(ErrorCode::argument, "csw: with " + std::to_string(csw) + " and mass " +
                                       std::to_string(mass) + " the clover term of site " +
                                       text(site) +
                                       " has no inverse; take a smaller csw, a larger mass or "
                                       "smoother links");
}

// A site's fields are written one after the other, so one must not be another's input or output.
template <class Real>
void check_apart(std::span<SpinorField<Real>> out, std::span<const SpinorField<Real>> in) {
  for (std::size_t f = 0; f < out.size(); ++f) {
    for (std::size_t g = 0; g < in.size(); ++g) {
      if (f == g || (out[f].data() != in[g].data() && out[f].data() != out[g].data())) continue;
      throw Error(ErrorCode::argument, "out: field " + std::to_string(f) + " is field " +
                                           std::to_string(g) +
                                           " of in or out, too; pass a field of its own");
    }
  }
}

template <class Real>
void check_pairs(const Layout& layout, std::span<SpinorField<Real>> out,
                 std::span<const SpinorField<Real>> in) {
  detail::check_numbers(out.size(), in.size());
  for (std::size_t f = 0; f < in.size(); ++f) {
    const bool alike = in[f].sites() == in.front().sites() && in[f].sites() == out[f].sites();
    if (in[f].layout() == layout && out[f].layout() == layout && alike) continue;
    throw Error(ErrorCode::argument,
                "out, in: fields of another layout or on different sites; make both with field()");
  }
  check_apart(out, in);
}

}  // namespace

template <class Real>
CloverOperator<Real>::CloverOperator(const GaugeField<Real>& gauge, double mass, double csw,
                                     const OperatorOptions& options)
    : HoppingTerm<Real>(gauge,
                        made_collectively(gauge.lattice(),
                                          [&] {
                                            require_finite("mass", mass);
                                            require_finite("csw", csw);
                                            return Layout(gauge.lattice(), sizeof(Real));
                                          }),
                        options),
      mass_(mass),
      csw_(csw) {
  collectively(gauge.lattice(), [&] { make_terms(gauge); });
}

// Collective: it is called inside of collectively().
template <class Real>
void CloverOperator<Real>::make_terms(const GaugeField<Real>& gauge) {
  const double mass = mass_, csw = csw_;
  const Layout& layout = this->layout();
  const Lattice& lattice = gauge.lattice();
  const auto lanes = static_cast<std::size_t>(layout.lanes());
  term_ = Buffer<Real>(layout.vector_sites() * clover_reals * lanes);
  inverse_ = Buffer<Real>(term_.size());
  agree(lattice, {{"mass", exactly(mass)}, {"csw", exactly(csw)}});
  const SiteMatrices links(lattice, in_double(gauge).data(), dimensions);
  collectively(lattice, [&] {
    for_each_site(lattice.local(), [&](const Extents& x, std::size_t) {
      const Layout::Place place = layout.place(x);
      std::size_t first =
          place.vector * clover_reals * lanes + static_cast<std::size_t>(place.lane);
      for (Block& block : clover_blocks(links, x, mass, csw)) {
        pack(&term_[first], block, layout.lanes());
        const double log_determinant = invert(block);
        if (!std::isfinite(log_determinant)) refuse(lattice, x, mass, csw);
        log_determinants_[parity(lattice, x)] += log_determinant;
        pack(&inverse_[first], block, layout.lanes());
        first += block_reals * lanes;
      }
    });
  });
}

// Threads take equal parts of the vector sites, and a part is multiplied piece by piece: with all
// fields while its blocks are in the first or second cache.
template <class Real>
void CloverOperator<Real>::multiply(const Buffer<Real>& blocks, std::span<SpinorField<Real>> out,
                                    std::span<const SpinorField<Real>> in) {
  constexpr std::ptrdiff_t sites_a_piece = 8;  // 36 KiB of blocks in vectors of 64 bytes
  check_pairs(this->layout(), out, in);
  const Layout& layout = this->layout();
  const Sites sites = in.front().sites();
  const auto count = static_cast<std::ptrdiff_t>(layout.vector_sites(sites));
  const Real* first =
      &blocks[layout.first(sites) * clover_reals * static_cast<std::size_t>(layout.lanes())];
  const auto& kernels = kernels::local_table<Real>(layout.lanes());
  const std::ptrdiff_t threads = this->hop_->team->size();
  const std::ptrdiff_t piece = in.size() == 1 ? count : sites_a_piece;
  this->hop_->team->run([&](int thread) {
    const std::ptrdiff_t end = count * (thread + 1) / threads;
    for (std::ptrdiff_t at = count * thread / threads; at < end; at += piece) {
      const std::ptrdiff_t next = std::min(at + piece, end);
      for (std::size_t f = 0; f < in.size(); ++f) {
        kernels.clover(first, in[f].data(), out[f].data(), at, next);
      }
    }
  });
}

// ---- one field is a set of one

template <class Real>
void CloverOperator<Real>::diagonal_part(SpinorField<Real>& out, const SpinorField<Real>& in) {
  multiply(term_, std::span(&out, 1), std::span(&in, 1));
}

template <class Real>
void CloverOperator<Real>::diagonal_inverse(SpinorField<Real>& out, const SpinorField<Real>& in) {
  multiply(inverse_, std::span(&out, 1), std::span(&in, 1));
}

template <class Real>
void CloverOperator<Real>::apply(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger) {
  apply(std::span(&out, 1), std::span(&in, 1), dagger);
}

template <class Real>
void CloverOperator<Real>::mult(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger) {
  mult(std::span(&out, 1), std::span(&in, 1), dagger);
}

template <class Real>
void CloverOperator<Real>::apply_schur(SpinorField<Real>& out, const SpinorField<Real>& in,
                                       bool dagger) {
  apply_schur(std::span(&out, 1), std::span(&in, 1), dagger);
}

template <class Real>
void CloverOperator<Real>::apply_schur_by_mult(SpinorField<Real>& out,
                                               const SpinorField<Real>& in) {
  apply_schur_by_mult(std::span(&out, 1), std::span(&in, 1));
}

// ---- several fields

template <class Real>
void CloverOperator<Real>::diagonal_part(std::span<SpinorField<Real>> out,
                                         std::span<const SpinorField<Real>> in) {
  multiply(term_, out, in);
}

template <class Real>
void CloverOperator<Real>::diagonal_inverse(std::span<SpinorField<Real>> out,
                                            std::span<const SpinorField<Real>> in) {
  multiply(inverse_, out, in);
}

template <class Real>
void CloverOperator<Real>::apply(std::span<SpinorField<Real>> out,
                                 std::span<const SpinorField<Real>> in, bool dagger) {
  diagonal_part(out, in);
  this->hop_add(out, 1, out, 1, in, dagger);
}

template <class Real>
void CloverOperator<Real>::mult(std::span<SpinorField<Real>> out,
                                std::span<const SpinorField<Real>> in, bool dagger) {
  this->hop(out, in, dagger);
  diagonal_inverse(out, out);
}

// The fields on the sites between two hops.
template <class Real>
std::span<SpinorField<Real>> CloverOperator<Real>::between(std::span<const SpinorField<Real>> in) {
  return detail::between(between_, this->layout(), opposite(in.front().sites()), in.size());
}

template <class Real>
void CloverOperator<Real>::apply_schur(std::span<SpinorField<Real>> out,
                                       std::span<const SpinorField<Real>> in, bool dagger) {
  detail::check_numbers(out.size(), in.size());
  const std::span<SpinorField<Real>> other = between(in);
  mult(other, in, dagger);
  diagonal_part(out, in);
  this->hop_add(out, 1, out, -1, other, dagger);
}

template <class Real>
void CloverOperator<Real>::apply_schur_by_mult(std::span<SpinorField<Real>> out,
                                               std::span<const SpinorField<Real>> in) {
  detail::check_distinct<Real>(out, in);
  const std::span<SpinorField<Real>> other = between(in);
  mult(other, in);
  mult(out, other);
  const auto subtract = [&](std::size_t f, std::size_t first, std::size_t end) {
    Real* to = out[f].data();
    const Real* from = in[f].data();
    for (std::size_t n = first; n < end; ++n) to[n] = from[n] - to[n];
  };
  const auto threads = static_cast<std::size_t>(this->hop_->team->size());
  this->hop_->team->run([&](int thread) {
    const auto t = static_cast<std::size_t>(thread);
    for (std::size_t f = 0; f < out.size(); ++f) {
      const std::size_t size = out[f].size();
      subtract(f, size * t / threads, size * (t + 1) / threads);
    }
  });
}

template <class Real>
double CloverOperator<Real>::log_determinant(Sites sites) const {
  double out = (sites == Sites::odd ? 0 : log_determinants_[0]) +
               (sites == Sites::even ? 0 : log_determinants_[1]);
  this->lattice().sum(&out, 1);
  return out;
}

template <class Real>
double CloverOperator<Real>::mult_flops(Sites sites) const noexcept {
  return (1320.0 + 576.0) * static_cast<double>(this->lattice().local_sites()) /
         (sites == Sites::all ? 1 : 2);
}

template class CloverOperator<float>;
template class CloverOperator<double>;

}  // namespace ropewalk::lattice
