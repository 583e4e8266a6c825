// The domain-wall operator consists of hops along the fifth dimension and their inverse; this file
// has them and their composition.
#include <cmath>
#include <vector>

#include "agree.hpp"
#include "hop.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/lattice/operators.hpp"

namespace ropewalk::lattice {

namespace {

// The part of M diagonal in the sites of four dimensions is, for each chirality, a - S where S
// shifts by one slice: up for P_+ (s takes from s - 1), down for P_- (from s + 1), with -mass over
// the wall. The adjoint shifts the other way. Its inverse has powers of a over 1 + mass a^-extent,
// which closes it over the wall. For |a| < 1 that leaves the range of double: all is multiplied by
// a^extent then.
bool is_multiplied(double a, double mass) { return std::abs(a) < 1 && mass != 0; }

// Returns a^power / (1 + mass a^-extent); power is from -extent to -1.
double closed_power(double a, double mass, int extent, int power) {
  if (is_multiplied(a, mass)) return std::pow(a, power + extent) / (std::pow(a, extent) + mass);
  if (mass == 0) return std::pow(a, power);
  return std::pow(a, power) / (1 + mass * std::pow(a, -extent));
}

// Returns 1 + mass a^-extent relative to its terms, which may differ much.
double closing_sum(double a, double mass, int extent) {
  const bool multiplied = is_multiplied(a, mass);
  const double first = multiplied ? std::pow(a, extent) : 1;
  const double second = multiplied || mass == 0 ? mass : mass * std::pow(a, -extent);
  return (first + second) / (std::abs(first) + std::abs(second));
}

void check(const DomainWall& wall) {
  if (wall.fifth_extent < 2 || wall.fifth_extent > kernels::max_fifth_extent) {
    throw Error(ErrorCode::argument, "fifth_extent: found " + std::to_string(wall.fifth_extent) +
                                         ", expected 2 to 256; one slice has no walls");
  }
  require_finite("mass", wall.mass);
  require_finite("height", wall.height);
  const double diagonal = 5 - wall.height;
  require_inverse("height", wall.height, diagonal, "the diagonal 5 - height is 0");
  require_inverse("mass", wall.mass, closing_sum(diagonal, wall.mass, wall.fifth_extent),
                  "1 + mass (5 - height)^-fifth_extent is 0");
}

// The inverse of a - S, dense and row-major.
std::vector<double> dense_inverse(int extent, double a, double mass, bool from_below) {
  const auto n = static_cast<std::size_t>(extent);
  std::vector<double> out(n * n, 0);
  for (int column = 0; column < extent; ++column) {
    // Solves for b = unit vector at `column`, in mirrored order where s takes from above.
    const int source = from_below ? column : extent - 1 - column;
    for (int s = 0; s < extent; ++s) {
      const double value = s < source
                               ? -mass * closed_power(a, mass, extent, source - extent - s - 1)
                               : closed_power(a, mass, extent, source - s - 1);
      const int row = from_below ? s : extent - 1 - s;
      out[static_cast<std::size_t>(row) * n + static_cast<std::size_t>(column)] = value;
    }
  }
  return out;
}

}  // namespace

// These numbers of the fifth dimension do not depend on the adjoint; [0] is as M has them for P_+
// (from below), [1] for P_- (from above).
template <class Real>
struct DomainWallOperator<Real>::Fifth {
  using Index = typename kernels::LaneTables<Real>::Index;
  Fifth(const Layout& layout, double diagonal, double mass);

  alignas(64) Index rotate[2][kernels::max_lanes]{};
  alignas(64) Real edge[2][kernels::max_lanes]{};
  std::vector<Real> closing;
  Buffer<Real> inverse[2];
};

template <class Real>
DomainWallOperator<Real>::Fifth::Fifth(const Layout& layout, double a, double mass) {
  const int extent = layout.fifth_extent(), lanes = layout.lanes(), inner = layout.inner();
  for (int s = 0; s < extent; ++s) {
    closing.push_back(static_cast<Real>(mass * closed_power(a, mass, extent, -(s + 1))));
  }
  if (layout.vectors() != Vectors::fifth) return;
  for (int above = 0; above < 2; ++above) {
    for (int lane = 0; lane < lanes; ++lane) {
      rotate[above][lane] = static_cast<Index>((lane + (above != 0 ? 1 : lanes - 1)) % lanes);
      const bool wall = lane == (above != 0 ? lanes - 1 : 0);
      edge[above][lane] = static_cast<Real>(wall ? mass : -1);
    }
    const std::vector<double> exact = dense_inverse(extent, a, mass, above == 0);
    inverse[above] = Buffer<Real>(exact.size());
    const auto depth = static_cast<std::size_t>(extent);
    const auto width = static_cast<std::size_t>(lanes);
    const auto columns = static_cast<std::size_t>(inner);
    for (std::size_t i = 0; i < columns; ++i) {
      for (std::size_t s = 0; s < depth; ++s) {
        for (std::size_t lane = 0; lane < width; ++lane) {
          inverse[above][(i * depth + s) * width + lane] =
              static_cast<Real>(exact[(lane * columns + i) * depth + s]);
        }
      }
    }
  }
}

template <class Real>
DomainWallOperator<Real>::DomainWallOperator(const GaugeField<Real>& gauge, const DomainWall& wall,
                                             Vectors vectors, const OperatorOptions& options)
    : HoppingTerm<Real>(gauge,
                        made_collectively(gauge.lattice(),
                                          [&] {
                                            check(wall);
                                            return Layout(gauge.lattice(), sizeof(Real), vectors,
                                                          wall.fifth_extent);
                                          }),
                        options),
      parameters_(wall) {
  collectively(gauge.lattice(), [&] {
    agree(gauge.lattice(), {{"mass", exactly(wall.mass)}, {"height", exactly(wall.height)}});
    fifth_ = std::make_unique<Fifth>(this->layout(), diagonal(), wall.mass);
  });
}

template <class Real>
DomainWallOperator<Real>::~DomainWallOperator() = default;
template <class Real>
DomainWallOperator<Real>::DomainWallOperator(DomainWallOperator&&) noexcept = default;
template <class Real>
DomainWallOperator<Real>& DomainWallOperator<Real>::operator=(DomainWallOperator&&) noexcept =
    default;

template <class Real>
void DomainWallOperator<Real>::along_fifth(SpinorField<Real>& out, const SpinorField<Real>& in,
                                           bool dagger, bool inverse) {
  detail::Hop<Real>& hop = *this->hop_;
  if (!(out.layout() == hop.layout) || !(in.layout() == hop.layout) || out.sites() != in.sites()) {
    throw Error(ErrorCode::argument,
                "out, in: fields of other layouts or sites, expected two of this operator's on the "
                "same sites; make them with field()");
  }
  kernels::FifthArguments<Real> a;
  a.in = in.data();
  a.out = out.data();
  a.inner = hop.layout.inner();
  a.diagonal = static_cast<Real>(diagonal());
  a.mass = static_cast<Real>(parameters_.mass);
  a.closing = fifth_->closing.data();
  for (int lower = 0; lower < 2; ++lower) {
    const int above = (lower != 0) != dagger ? 1 : 0;
    a.from_below[lower] = above == 0;
    a.matrix[lower] = fifth_->inverse[above].data();
    a.rotate[lower] = fifth_->rotate[above];
    a.edge[lower] = fifth_->edge[above];
  }
  const auto kernel = hop.kernels.fifth[static_cast<int>(hop.layout.vectors())][inverse ? 1 : 0];
  const auto sites = static_cast<std::ptrdiff_t>(hop.layout.vector_sites(in.sites()));
  const std::ptrdiff_t threads = hop.team->size();
  hop.team->run([&](int t) { kernel(a, sites * t / threads, sites * (t + 1) / threads); });
}

template <class Real>
void DomainWallOperator<Real>::diagonal_part(SpinorField<Real>& out, const SpinorField<Real>& in,
                                             bool dagger) {
  along_fifth(out, in, dagger, false);
}

template <class Real>
void DomainWallOperator<Real>::diagonal_inverse(SpinorField<Real>& out, const SpinorField<Real>& in,
                                                bool dagger) {
  along_fifth(out, in, dagger, true);
}

template <class Real>
void DomainWallOperator<Real>::apply(SpinorField<Real>& out, const SpinorField<Real>& in,
                                     bool dagger) {
  apply(std::span(&out, 1), std::span(&in, 1), dagger);
}

template <class Real>
void DomainWallOperator<Real>::apply(std::span<SpinorField<Real>> out,
                                     std::span<const SpinorField<Real>> in, bool dagger) {
  detail::check_distinct<Real>(out, in);
  for (std::size_t f = 0; f < out.size(); ++f) diagonal_part(out[f], in[f], dagger);
  this->hop_add(out, 1, out, 1, in, dagger);
}

template <class Real>
void DomainWallOperator<Real>::apply_schur(SpinorField<Real>& out, const SpinorField<Real>& in,
                                           bool dagger) {
  apply_schur(std::span(&out, 1), std::span(&in, 1), dagger);
}

// M_oo - M_oe M_ee^-1 M_eo; the adjoint has its factors the other way round, each the adjoint.
template <class Real>
void DomainWallOperator<Real>::apply_schur(std::span<SpinorField<Real>> out,
                                           std::span<const SpinorField<Real>> in, bool dagger) {
  detail::check_distinct<Real>(out, in);
  const std::span<SpinorField<Real>> between =
      detail::between(between_, this->layout(), opposite(in.front().sites()), in.size());
  this->hop(between, in, dagger);
  for (SpinorField<Real>& one : between) diagonal_inverse(one, one, dagger);
  for (std::size_t f = 0; f < out.size(); ++f) diagonal_part(out[f], in[f], dagger);
  this->hop_add(out, 1, out, -1, between, dagger);
}

template class DomainWallOperator<float>;
template class DomainWallOperator<double>;

}  // namespace ropewalk::lattice
