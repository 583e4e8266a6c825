// Fields of gauge links and spinors, and the plain arrays they are filled from and read into.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>

#include "ropewalk/lattice/lattice.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::lattice {

// Which sites a field has: all, or those whose global x + y + z + t is even or odd.
enum class Sites { all, even, odd };
const char* name(Sites);

// What the lanes of a vector hold. `space`: the same site of as many sub-lattices ("virtual nodes",
// Boyle et al., arXiv:1512.03487). `fifth`: the s-values of one site; then the fifth extent must be
// a multiple of the number of lanes, and there are no sub-lattices at whose edges lanes are
// permuted.
enum class Vectors { space, fifth };
const char* name(Vectors);

// How the sites of this rank lie in memory; shared by all fields and operators of one kind.
//
// Vector site v holds `lanes` sites (Vectors::space) or one (Vectors::fifth). A spinor field is
//   Real data[vector site][inner][spin][colour][re, im][lane]
// with inner = fifth extent (space), or fifth extent / lanes, where s = lane x inner extent + inner
// index (fifth). The even sites come first, then the odd ones, in a lattice that has both
// (`checkered`); a field of one parity is just its half.
class Layout {
 public:
  struct Place {
    std::size_t vector;  // vector site, counted over all sites
    int lane;            // of Vectors::space; 0 otherwise
  };

  // `lanes` 0: as many as the vectors of this machine have for `bytes_per_real`, or fewer where the
  // lattice is too small or odd for that. Throws Error(argument) for a number that does not fit.
  Layout(const Lattice&, std::size_t bytes_per_real, Vectors = Vectors::space, int fifth_extent = 1,
         int lanes = 0);

  const Lattice& lattice() const noexcept;
  Vectors vectors() const noexcept;
  int lanes() const noexcept;
  int fifth_extent() const noexcept;
  int inner() const noexcept;               // vectors of each component a vector site has
  const Extents& blocks() const noexcept;   // sub-lattices in each dimension
  const Extents& extents() const noexcept;  // of one sub-lattice
  const Extents& order() const noexcept;    // dimensions, the fastest in memory first
  bool checkered() const noexcept;          // has fields of one parity
  std::size_t vector_sites() const noexcept;
  std::size_t vector_sites(Sites) const noexcept;
  std::size_t first(Sites) const noexcept;  // vector site where that half begins

  Place place(const Extents& local_site) const noexcept;
  std::size_t vector(const Extents& sub_lattice_site) const noexcept;
  // Returns the coordinates in the sub-lattice, and in the rank's box for one lane of it.
  const Extents& sub_lattice_site(std::size_t vector) const noexcept;
  Extents local_site(std::size_t vector, int lane) const noexcept;
  Sites parity(std::size_t vector) const noexcept;  // even or odd

  bool operator==(const Layout&) const noexcept;  // true: data have the same order in both

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

// Four spins of three colours at each site, and at each s where there is a fifth dimension. The
// field lies in the arena of the process, on huge pages where there are any, and is zero at first.
template <class Real>
class SpinorField {
 public:
  explicit SpinorField(const Layout&, Sites = Sites::all);
  explicit SpinorField(const Lattice& lattice, Sites sites = Sites::all, int fifth_extent = 1,
                       Vectors vectors = Vectors::space)
      : SpinorField(Layout(lattice, sizeof(Real), vectors, fifth_extent), sites) {}

  const Layout& layout() const noexcept { return layout_; }
  Sites sites() const noexcept { return sites_; }
  // Raw numbers, in the order of Layout: sums and multiples may run over them as they lie.
  Real* data() noexcept { return numbers_.data(); }
  const Real* data() const noexcept { return numbers_.data(); }
  std::size_t size() const noexcept { return numbers_.size(); }  // Reals
  Real* at(std::size_t vector, int inner = 0) noexcept;          // vector counted as in Layout
  const Real* at(std::size_t vector, int inner = 0) const noexcept;

  // Plain arrays of the whole local lattice, [site][s][spin][colour], site order of site_index. A
  // field of one parity takes the sites of that parity, and leaves the others alone.
  void import_from(const std::complex<double>* plain);
  void export_to(std::complex<double>* plain) const;

  void swap(SpinorField& other) noexcept;

 private:
  template <class Move>
  void for_each_site(Move move) const;

  Layout layout_;
  Sites sites_;
  Buffer<Real> numbers_;
};

// Links U_mu(x), from x to x + mu: Real complex [site][mu][row][column], site order of site_index.
// Operators make their own copies, in the order they use them.
template <class Real>
class GaugeField {
 public:
  explicit GaugeField(const Lattice&);  // unit links

  const Lattice& lattice() const noexcept { return lattice_; }
  std::complex<Real>* data() noexcept { return links_.data(); }
  const std::complex<Real>* data() const noexcept { return links_.data(); }
  std::size_t size() const noexcept { return links_.size(); }  // complex numbers
  std::complex<Real>* link(std::size_t site, int mu) noexcept {
    return links_.data() + (site * dimensions + static_cast<std::size_t>(mu)) * 9;
  }
  const std::complex<Real>* link(std::size_t site, int mu) const noexcept {
    return links_.data() + (site * dimensions + static_cast<std::size_t>(mu)) * 9;
  }
  void import_from(const std::complex<double>* plain);
  void export_to(std::complex<double>* plain) const;

 private:
  Lattice lattice_;
  Buffer<std::complex<Real>> links_;
};

extern template class SpinorField<float>;
extern template class SpinorField<double>;
extern template class GaugeField<float>;
extern template class GaugeField<double>;

}  // namespace ropewalk::lattice
