#include "links.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "agree.hpp"
#include "limits.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::lattice {

using kernels::leg_count;
using kernels::LinkForm;

namespace {

// Links U_mu at the upper face of the rank at -mu, for this rank's backward legs.
template <class Real>
class BorrowedLinks {
 public:
  explicit BorrowedLinks(const GaugeField<Real>& gauge) : gauge_(gauge) {
    const Lattice& lattice = gauge.lattice();
    bool any = false;
    for (int d = 0; d < dimensions; ++d) any = any || lattice.divided(d);
    if (any) exchange(lattice);
  }

  // Returns U_mu at `site` - mu.
  const std::complex<Real>* behind(Extents site, int mu) const {
    const Extents& local = gauge_.lattice().local();
    if (site[mu] == 0 && gauge_.lattice().divided(mu)) {
      return received_[mu].data() + face_index(local, site, mu) * link_complex;
    }
    site[mu] = (site[mu] + local[mu] - 1) % local[mu];
    return gauge_.link(site_index(local, site), mu);
  }

 private:
  static std::size_t face_index(const Extents& local, Extents site, int mu) {
    Extents face = local;
    face[mu] = 1;
    site[mu] = 0;
    return site_index(face, site);
  }

  void exchange(const Lattice& lattice) {
    const Extents& local = lattice.local();
    constexpr std::size_t faces = std::size_t{2} * dimensions;
    FacePackets packets{std::vector<const void*>(faces, nullptr),
                        std::vector<void*>(faces, nullptr), std::vector<std::size_t>(faces, 0)};
    Buffer<std::complex<Real>> send[dimensions], unused[dimensions];
    for (int mu = 0; mu < dimensions; ++mu) {
      if (!lattice.divided(mu)) continue;
      const std::size_t count = lattice.local_sites() / static_cast<std::size_t>(local[mu]);
      send[mu] = pack(mu, count);
      received_[mu] = Buffer<std::complex<Real>>(count * link_complex);
      unused[mu] = Buffer<std::complex<Real>>(count * link_complex);
      const std::size_t up = 2 * static_cast<std::size_t>(mu), down = up + 1;
      packets.send[up] = packets.send[down] = send[mu].data();
      packets.receive[down] = received_[mu].data();
      packets.receive[up] = unused[mu].data();
      packets.bytes[up] = packets.bytes[down] = send[mu].bytes();
    }
    EndpointSet& endpoints = lattice.endpoints();
    meet(lattice);
    Halo halo(lattice.grid(), endpoints, packets, {.strategy = Strategy::concurrent});
    halo.exchange();
  }

  Buffer<std::complex<Real>> pack(int mu, std::size_t count) const {
    const Extents& local = gauge_.lattice().local();
    Buffer<std::complex<Real>> out(count * link_complex);
    Extents end = local, at{};
    for (at[3] = 0; at[3] < end[3]; ++at[3]) {
      for (at[2] = 0; at[2] < end[2]; ++at[2]) {
        for (at[1] = 0; at[1] < end[1]; ++at[1]) {
          for (at[0] = 0; at[0] < end[0]; ++at[0]) {
            if (at[mu] == local[mu] - 1) {
              std::copy_n(gauge_.link(site_index(local, at), mu), link_complex,
                          out.data() + face_index(local, at, mu) * link_complex);
            }
          }
        }
      }
    }
    return out;
  }

  const GaugeField<Real>& gauge_;
  Buffer<std::complex<Real>> received_[dimensions];
};

// How far the third row is from that of the matrix of SU(3) with the first two.
template <class Real>
double distance_from_two_rows(const std::complex<Real>* u) {
  double out = 0;
  for (int j = 0; j < 3; ++j) {
    const int k = (j + 1) % 3, l = (j + 2) % 3;
    const std::complex<Real> third = std::conj(u[k] * u[3 + l] - u[l] * u[3 + k]);
    out = std::max(out, static_cast<double>(std::abs(third - u[6 + j])));
  }
  return out;
}

template <class Real>
bool gives_third_row(const GaugeField<Real>& gauge, double& worst) {
  worst = 0;
  for (std::size_t site = 0; site < gauge.lattice().local_sites(); ++site) {
    for (int mu = 0; mu < dimensions; ++mu) {
      worst = std::max(worst, distance_from_two_rows(gauge.link(site, mu)));
    }
  }
  return worst < 100 * static_cast<double>(std::numeric_limits<Real>::epsilon());
}

void require_third_rows(bool given, double worst) {
  if (given) return;
  throw Error(ErrorCode::argument,
              "links: two_rows asked for, expected links in SU(3), but a third row is " +
                  exactly(worst) +
                  " away from what the others give; pass Links::full or automatic");
}

}  // namespace

template <class Real>
OperatorLinks<Real>::OperatorLinks(const GaugeField<Real>& gauge, const Layout& layout,
                                   Links wanted, bool antiperiodic)
    : layout_(layout), slots_(link_slots(layout)) {
  choose_form(gauge, wanted);
  fill(gauge, antiperiodic);
}

template <class Real>
void OperatorLinks<Real>::choose_form(const GaugeField<Real>& gauge, Links wanted) {
  const auto lanes = static_cast<std::size_t>(layout_.lanes());
  form_ = layout_.vectors() == Vectors::fifth ? LinkForm::scalar : LinkForm::full;
  link_reals_ = form_ == LinkForm::scalar ? 18 : 18 * lanes;
  if (form_ == LinkForm::scalar || wanted == Links::full) return;
  const Lattice& lattice = gauge.lattice();
  double worst = 0;
  double bad = gives_third_row(gauge, worst) ? 0 : 1;
  if (wanted == Links::two_rows) {
    collectively(lattice, [&] { require_third_rows(bad == 0, worst); });
  }
  lattice.sum(&bad, 1);
  const double bytes = static_cast<double>(gauge.size() * 2 * sizeof(Real));
  // Links that come from memory in every hop take less time with two rows: the arithmetic of the
  // third is hidden. A fifth dimension uses each link several times once it is read.
  const detail::OperatorLimits& limits = detail::limits();
  const bool streams =
      bytes > limits.streamed_links_bytes && layout_.fifth_extent() < limits.amortising_extent;
  if (bad > 0 || (wanted == Links::automatic && !streams)) return;
  form_ = LinkForm::two_rows;
  link_reals_ = 12 * lanes;
}

template <class Real>
void OperatorLinks<Real>::fill(const GaugeField<Real>& gauge, bool antiperiodic) {
  const BorrowedLinks<Real> borrowed(gauge);
  const Lattice& lattice = gauge.lattice();
  const std::size_t own = slots_.slot.size() * dimensions;
  const int lanes = form_ == LinkForm::scalar ? 1 : layout_.lanes();
  const Real factor = form_ == LinkForm::two_rows ? Real(1) : Real(-0.5);
  by_site_ = Buffer<Real>((own + slots_.extras.size()) * link_reals_);
  const auto put = [&](std::size_t slot, int lane, const std::complex<Real>* u, Real sign) {
    Real* to = by_site_.data() + slot * link_reals_ + lane;
    const std::size_t numbers = form_ == LinkForm::two_rows ? 6 : link_complex;
    for (std::size_t c = 0; c < numbers; ++c) {
      to[2 * c * static_cast<std::size_t>(lanes)] = sign * factor * u[c].real();
      to[(2 * c + 1) * static_cast<std::size_t>(lanes)] = sign * factor * u[c].imag();
    }
  };
  const int last = lattice.global()[3] - 1;
  const auto sign = [&](const Extents& site, int mu, int back) {
    const int t = lattice.origin()[3] + site[3] - (mu == 3 ? back : 0);
    const bool over = antiperiodic && mu == 3 && (t == last || t == -1);
    return over ? Real(-1) : Real(1);
  };
  for (std::size_t v = 0; v < slots_.slot.size(); ++v) {
    for (int lane = 0; lane < lanes; ++lane) {
      const Extents site = layout_.local_site(v, lane);
      for (int mu = 0; mu < dimensions; ++mu) {
        put(v * dimensions + static_cast<std::size_t>(mu), lane,
            gauge.link(site_index(lattice.local(), site), mu), sign(site, mu, 0));
      }
    }
  }
  for (std::size_t i = 0; i < slots_.extras.size(); ++i) {
    for (int lane = 0; lane < lanes; ++lane) {
      const auto [vector, mu] = slots_.extras[i];
      const Extents site = layout_.local_site(static_cast<std::size_t>(vector), lane);
      put(own + i, lane, borrowed.behind(site, mu), sign(site, mu, 1));
    }
  }
}

// The adjoint of a link as by_site_ has it. Two rows of it have elements of the third of U: from
// the other two, times the sign that all of U has.
template <class Real>
void OperatorLinks<Real>::put_adjoint(Real* to, const Real* u, const Real* sign) const {
  const std::size_t lanes =
      form_ == LinkForm::scalar ? 1 : static_cast<std::size_t>(layout_.lanes());
  const std::size_t rows = form_ == LinkForm::two_rows ? 2 : 3;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const auto stored = [&](std::size_t k) {
      return std::complex<Real>(u[2 * k * lanes + lane], u[(2 * k + 1) * lanes + lane]);
    };
    const auto element = [&](std::size_t i, std::size_t j) {
      if (i < rows) return stored(3 * i + j);
      const std::size_t k = (j + 1) % 3, l = (j + 2) % 3;
      return sign[lane] * std::conj(stored(k) * stored(3 + l) - stored(l) * stored(3 + k));
    };
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        to[2 * (3 * i + j) * lanes + lane] = element(j, i).real();
        to[(2 * (3 * i + j) + 1) * lanes + lane] = -element(j, i).imag();
      }
    }
  }
}

template <class Real>
Buffer<Real> OperatorLinks<Real>::by_row(const HopTable& table, Sites sites) const {
  Buffer<Real> out(table.rows.size() * leg_count * link_reals_);
  const kernels::LaneTables<Real> lanes = lane_tables<Real>(layout_);
  const std::vector<Real> inside(kernels::max_lanes, Real(1));
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const kernels::HopRow& row = table.rows[r];
    const auto v = static_cast<std::size_t>(row.out) + layout_.first(sites);
    for (int leg = 0; leg < leg_count; ++leg) {
      Real* to =
          out.data() +
          (r * leg_count + static_cast<std::size_t>(kernels::place_in_row(leg))) * link_reals_;
      const Real* from =
          by_site_.data() + static_cast<std::size_t>(slots_.slot[v][leg]) * link_reals_;
      const bool boundary = (row.legs >> (kernels::boundary_bit + leg) & 1) != 0;
      if (forward(leg)) {
        std::memcpy(to, from, link_reals_ * sizeof(Real));
      } else {
        put_adjoint(to, from, boundary ? lanes.boundary[leg] : inside.data());
      }
    }
  }
  return out;
}

template <class Real>
const Real* OperatorLinks<Real>::attach(HopTable& table, Sites sites) {
  if (sites == Sites::all) {
    for (kernels::HopRow& row : table.rows) {
      for (int leg = 0; leg < leg_count; ++leg) {
        row.link[leg] = slots_.slot[static_cast<std::size_t>(row.out)][leg];
      }
    }
    return by_site_.data();
  }
  Buffer<Real>& own = by_parity_[sites == Sites::even ? 0 : 1];
  if (own.size() == 0) own = by_row(table, sites);
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    for (int leg = 0; leg < leg_count; ++leg) {
      table.rows[r].link[leg] =
          static_cast<std::int32_t>(r * leg_count) + kernels::place_in_row(leg);
    }
  }
  return own.data();
}

template class OperatorLinks<float>;
template class OperatorLinks<double>;

}  // namespace ropewalk::lattice
