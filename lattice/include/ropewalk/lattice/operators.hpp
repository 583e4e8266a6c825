// Wilson and domain-wall Dirac operators with their halo exchange.
//
// Gamma matrices are in the chiral (DeGrand-Rossi) basis, gamma5 = diag(1, 1, -1, -1). The hopping
// term is
//   (D_h psi)(x) = -1/2 sum_mu [ (1 - g_mu) U_mu(x) psi(x + mu)
//                              + (1 + g_mu) U_mu(x - mu)^+ psi(x - mu) ].
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ropewalk/lattice/fields.hpp"

namespace ropewalk::lattice {

// What happens to the faces of a lattice that is divided over ranks.
enum class ExchangeMode {
  off,         // not exchanged, so results at the faces are wrong; shows what the exchange costs
  sequential,  // exchanged before the computation
  overlap      // exchanged during the computation; sites that need faces come when these are there
};
const char* name(ExchangeMode);
ExchangeMode exchange_mode(const std::string& name);  // Error(argument) lists the names

// How the operator stores its links. Two rows of a matrix of SU(3) give the third, so that two_rows
// saves a third of the memory traffic of links, at the price of more arithmetic.
enum class Links { automatic, full, two_rows };
const char* name(Links);

// The numbers in which faces travel to other ranks. half: binary16, a half of the bytes in single
// precision and a quarter in double (and 2 bytes for each 12 vectors). A number is then off by at
// most 2^-11 of itself, or 2^-39 of the largest of those that are sent with it, which are of one
// site in each of the lanes; the size of a field does not matter. Hops that take nothing from other
// ranks keep their bits. For operators whose solutions another one corrects: solve_mixed().
enum class FacePrecision { full, half };
const char* name(FacePrecision);
FacePrecision face_precision(const std::string& name);  // Error(argument) lists the names

struct OperatorOptions {
  ExchangeMode exchange = ExchangeMode::overlap;
  Strategy strategy = Strategy::automatic;  // who drives the messages; see Halo
  int threads = 1;                          // threads that compute, the caller included
  // So many of these threads drive the messages, each its lanes (LatticeOptions::endpoints), before
  // they compute. 0: the caller makes progress with the messages between rows.
  int comm_threads = 0;
  bool antiperiodic_time = false;  // minus sign on the hops over the global boundary of t
  Links links = Links::automatic;  // two_rows: Error(argument) where the links are not in SU(3)
  FacePrecision face_precision = FacePrecision::full;
};

// Microseconds of the last hop on this rank's first thread, to see what overlap hides.
struct HopTimes {
  double faces_us = 0;     // projecting faces into send buffers
  double interior_us = 0;  // sites that need no other rank, or whose faces were there in time
  // Waiting for faces: before the computation (sequential), or after it (overlap), while no thread
  // of this rank had anything left to compute without them.
  double wait_us = 0;
  double surface_us = 0;  // sites that were deferred until their faces had arrived
};

// Calls its argument once for each worker, 0 to OperatorOptions::threads - 1, and returns when all
// are done, as a parallel region of OpenMP does.
using ParallelRegion = std::function<void(const std::function<void(int worker)>& work)>;

namespace detail {
template <class Real>
struct Hop;
}

// The hopping term, and the base of the operators below. One thread at a time uses the operators
// and solvers of a lattice; every rank must make the same calls in the same order.
//
// Fields must have the layout of the operator: make them with `field()`. `out` and `in` have all
// sites, or one has the even and the other the odd ones; Error(argument) otherwise. `out` must not
// be `in`.
template <class Real>
class HoppingTerm {
 public:
  // Collective.
  HoppingTerm(const GaugeField<Real>&, const Layout&, const OperatorOptions& = {});
  ~HoppingTerm();
  HoppingTerm(HoppingTerm&&) noexcept;
  HoppingTerm& operator=(HoppingTerm&&) noexcept;

  const Lattice& lattice() const noexcept { return layout().lattice(); }
  const Layout& layout() const noexcept;
  const OperatorOptions& options() const noexcept;
  SpinorField<Real> field(Sites sites = Sites::all) const {
    return SpinorField<Real>(layout(), sites);
  }

  // out = D_h in, or its adjoint; on each s-slice where there is a fifth dimension.
  void hop(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger = false);
  // The same, checked by name: from odd sites to even ones, and from even sites to odd ones.
  void hop_eo(SpinorField<Real>& even, const SpinorField<Real>& odd, bool dagger = false);
  void hop_oe(SpinorField<Real>& odd, const SpinorField<Real>& even, bool dagger = false);
  // out = a centre + b D_h in, in one pass; centre has the sites of out and may be out.
  void hop_add(SpinorField<Real>& out, double a, const SpinorField<Real>& centre, double b,
               const SpinorField<Real>& in, bool dagger = false);
  // The same for several fields at once, with the bits of one after the other: a link is read from
  // memory once for all of them, and the faces of all are exchanged in the same messages. in[i] is
  // for out[i]; Error(argument) where there are not as many of each, or where a field of `out` is
  // given elsewhere, too. The first call for so many fields makes the exchange for them. On every
  // rank the same number.
  void hop(std::span<SpinorField<Real>> out, std::span<const SpinorField<Real>> in,
           bool dagger = false);
  void hop_add(std::span<SpinorField<Real>> out, double a,
               std::span<const SpinorField<Real>> centre, double b,
               std::span<const SpinorField<Real>> in, bool dagger = false);

  // Parts of a hop, for measurements. exchange_only() projects and exchanges the faces;
  // set_exchange() changes how the next hops exchange.
  void exchange_only(const SpinorField<Real>& in, bool dagger = false);
  // Does the same while this thread calls `work`, which should take some microseconds, between two
  // polls of the messages, until all faces are there. Returns how often it has called it. It is for
  // operators with one thread.
  std::int64_t exchange_beside(const SpinorField<Real>& in, const std::function<void()>& work);
  // The hop as programs with a parallel region for each phase make it: faces are projected in one
  // region, sites that need no other rank computed in the next, the others in a third. The caller
  // alone starts the messages before the second and completes them behind it. The bits of hop().
  void hop_in_regions(SpinorField<Real>& out, const SpinorField<Real>& in,
                      const ParallelRegion& region);
  void set_exchange(ExchangeMode);
  HopTimes times() const noexcept;
  Strategy strategy() const noexcept;            // of the exchange, once it has been chosen
  std::size_t exchanged_bytes() const noexcept;  // sent to other ranks in a hop on all sites

  // Operations of this rank in a hop that writes `sites`: 1344 for each site and s-slice, as Grid's
  // ITT counts them, of which the eight products of SU(3) matrix and half spinor have 1056, spin
  // projections 96, and sums of legs 192.
  double flops(Sites sites = Sites::all) const noexcept;
  // The least memory traffic of a hop of so many fields at once: links and input are read once, the
  // output is written once.
  double bytes(Sites sites = Sites::all, int fields = 1) const noexcept;
  const char* isa() const noexcept;  // instruction set of the kernels: "avx512", ...
  Links links() const noexcept;      // chosen, when it was automatic

 protected:
  std::unique_ptr<detail::Hop<Real>> hop_;
};

// M = (4 + mass) + D_h.
template <class Real>
class WilsonOperator : public HoppingTerm<Real> {
 public:
  WilsonOperator(const GaugeField<Real>&, double mass, const OperatorOptions& = {});

  double mass() const noexcept { return mass_; }
  double diagonal() const noexcept { return 4 + mass_; }  // M_ee = M_oo = this times 1
  void apply(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger = false);
  // Red-black preconditioned, on the sites of in (even or odd; here odd):
  // M_oo - M_oe M_ee^-1 M_eo, or its adjoint.
  void apply_schur(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger = false);
  // Both for several fields at once, as HoppingTerm::hop.
  void apply(std::span<SpinorField<Real>> out, std::span<const SpinorField<Real>> in,
             bool dagger = false);
  void apply_schur(std::span<SpinorField<Real>> out, std::span<const SpinorField<Real>> in,
                   bool dagger = false);

 private:
  double mass_;
  std::vector<SpinorField<Real>> between_;
};

struct DomainWall {
  int fifth_extent = 16;  // 2 to 256
  double mass = 0.1;
  double height = 1.8;  // M5, the domain-wall height
};

// Shamir's domain-wall operator, with P+- = (1 +- gamma5)/2:
//   (M psi)_s = (5 - M5) psi_s + D_h psi_s - P_- psi_{s+1} - P_+ psi_{s-1},
// where the neighbour over the wall (s = Ls - 1 to 0, and 0 to Ls - 1) comes with +mass instead of
// -1. Red-black is by the parity of the four-dimensional site.
template <class Real>
class DomainWallOperator : public HoppingTerm<Real> {
 public:
  DomainWallOperator(const GaugeField<Real>&, const DomainWall&, Vectors = Vectors::space,
                     const OperatorOptions& = {});
  ~DomainWallOperator();
  DomainWallOperator(DomainWallOperator&&) noexcept;
  DomainWallOperator& operator=(DomainWallOperator&&) noexcept;

  const DomainWall& parameters() const noexcept { return parameters_; }
  double diagonal() const noexcept { return 5 - parameters_.height; }
  void apply(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger = false);
  // The part diagonal in four-dimensional sites, M_ee or M_oo, and its inverse. `out` may be `in`.
  void diagonal_part(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger = false);
  void diagonal_inverse(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger = false);
  void apply_schur(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger = false);
  // Both for several fields at once, as HoppingTerm::hop.
  void apply(std::span<SpinorField<Real>> out, std::span<const SpinorField<Real>> in,
             bool dagger = false);
  void apply_schur(std::span<SpinorField<Real>> out, std::span<const SpinorField<Real>> in,
                   bool dagger = false);

 private:
  struct Fifth;
  void along_fifth(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger, bool inverse);

  DomainWall parameters_;
  std::unique_ptr<Fifth> fifth_;
  std::vector<SpinorField<Real>> between_;
};

extern template class HoppingTerm<float>;
extern template class HoppingTerm<double>;
extern template class WilsonOperator<float>;
extern template class WilsonOperator<double>;
extern template class DomainWallOperator<float>;
extern template class DomainWallOperator<double>;

}  // namespace ropewalk::lattice
