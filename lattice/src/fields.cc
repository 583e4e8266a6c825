// This file has the memory of spinor and gauge fields, and copies plain arrays in and out.
#include "ropewalk/lattice/fields.hpp"

#include <utility>

#include "ropewalk/error.hpp"
#include "tables.hpp"

namespace ropewalk::lattice {

namespace {

constexpr std::size_t spinor_reals = 24;

void require_half(const Layout& layout, Sites sites) {
  if (sites == Sites::all || layout.checkered()) return;
  throw Error(ErrorCode::argument,
              "sites: found " + std::string(name(sites)) + " for the local lattice " +
                  text(layout.lattice().local()) + " (" + text(layout.lattice().global()) +
                  " over the rank grid " + text(layout.lattice().rank_grid()) +
                  "), expected even local extents in every dimension; take another rank grid or "
                  "a field on all sites");
}

void require_array(const void* plain) {
  if (plain != nullptr) return;
  throw Error(ErrorCode::argument,
              "plain: null, expected the numbers of all sites of this rank; pass an array of them");
}

}  // namespace

const char* name(Sites sites) {
  constexpr const char* names[] = {"all", "even", "odd"};
  return names[static_cast<int>(sites)];
}

const char* name(Vectors vectors) { return vectors == Vectors::space ? "space" : "fifth"; }

template <class Real>
SpinorField<Real>::SpinorField(const Layout& layout, Sites sites) : layout_(layout), sites_(sites) {
  require_half(layout, sites);
  numbers_ = Buffer<Real>(layout.vector_sites(sites) * static_cast<std::size_t>(layout.inner()) *
                          spinor_reals * static_cast<std::size_t>(layout.lanes()));
}

template <class Real>
const Real* SpinorField<Real>::at(std::size_t vector, int inner) const noexcept {
  const std::size_t block =
      (vector - layout_.first(sites_)) * static_cast<std::size_t>(layout_.inner()) +
      static_cast<std::size_t>(inner);
  return numbers_.data() + block * spinor_reals * static_cast<std::size_t>(layout_.lanes());
}

template <class Real>
Real* SpinorField<Real>::at(std::size_t vector, int inner) noexcept {
  return const_cast<Real*>(std::as_const(*this).at(vector, inner));
}

// move(Real* of the site's first number, index of its first number in the plain array).
template <class Real>
template <class Move>
void SpinorField<Real>::for_each_site(Move move) const {
  const int lanes = layout_.lanes(), inner = layout_.inner(), fifth = layout_.fifth_extent();
  const bool space = layout_.vectors() == Vectors::space;
  const std::size_t begin = layout_.first(sites_);
  const std::size_t end = begin + layout_.vector_sites(sites_);
  for (std::size_t v = begin; v < end; ++v) {
    for (int lane = 0; lane < lanes; ++lane) {
      const Extents site = layout_.local_site(v, space ? lane : 0);
      const std::size_t plain = site_index(layout_.lattice().local(), site);
      for (int i = 0; i < inner; ++i) {
        const int s = space ? i : lane * inner + i;
        move(at(v, i) + lane,
             (plain * static_cast<std::size_t>(fifth) + static_cast<std::size_t>(s)) *
                 spinor_complex);
      }
    }
  }
}

template <class Real>
void SpinorField<Real>::import_from(const std::complex<double>* plain) {
  require_array(plain);
  const auto lanes = static_cast<std::size_t>(layout_.lanes());
  for_each_site([&](const Real* place, std::size_t index) {
    Real* to = numbers_.data() + (place - numbers_.data());
    for (std::size_t c = 0; c < spinor_complex; ++c) {
      to[2 * c * lanes] = static_cast<Real>(plain[index + c].real());
      to[(2 * c + 1) * lanes] = static_cast<Real>(plain[index + c].imag());
    }
  });
}

template <class Real>
void SpinorField<Real>::export_to(std::complex<double>* plain) const {
  require_array(plain);
  const auto lanes = static_cast<std::size_t>(layout_.lanes());
  for_each_site([&](const Real* place, std::size_t index) {
    for (std::size_t c = 0; c < spinor_complex; ++c) {
      plain[index + c] = {static_cast<double>(place[2 * c * lanes]),
                          static_cast<double>(place[(2 * c + 1) * lanes])};
    }
  });
}

template <class Real>
void SpinorField<Real>::swap(SpinorField& other) noexcept {
  std::swap(layout_, other.layout_);
  std::swap(sites_, other.sites_);
  std::swap(numbers_, other.numbers_);
}

template <class Real>
GaugeField<Real>::GaugeField(const Lattice& lattice)
    : lattice_(lattice), links_(lattice.local_sites() * dimensions * link_complex) {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    links_[i] = i % link_complex % 4 == 0 ? Real(1) : Real(0);
  }
}

template <class Real>
void GaugeField<Real>::import_from(const std::complex<double>* plain) {
  require_array(plain);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    links_[i] = {static_cast<Real>(plain[i].real()), static_cast<Real>(plain[i].imag())};
  }
}

template <class Real>
void GaugeField<Real>::export_to(std::complex<double>* plain) const {
  require_array(plain);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    plain[i] = {static_cast<double>(links_[i].real()), static_cast<double>(links_[i].imag())};
  }
}

template class SpinorField<float>;
template class SpinorField<double>;
template class GaugeField<float>;
template class GaugeField<double>;

}  // namespace ropewalk::lattice
