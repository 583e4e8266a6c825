// The kernels of one instruction set and precision behind function pointers, and the tables they
// walk. No knowledge of ranks: received faces are addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace ropewalk::lattice::kernels {

// Legs of the hopping term: mu is the hop from x + mu, 4 + mu that from x - mu.
inline constexpr int leg_count = 8;

// How a site gets the half spinor of a leg; HopRow::legs has two bits for each leg.
enum class Leg : std::uint32_t {
  local = 0,     // as it lies
  permuted = 1,  // over the edge of the sub-lattices: lanes change places
  received = 2,  // all lanes from another rank
  merged = 3     // some lanes from another rank, the others permuted
};

// One output vector site of a hop; `out` and `source` number the vector sites of their fields.
struct HopRow {
  std::int32_t out;
  std::uint32_t legs;  // Leg of each leg; bits 16 and up: leg crosses the antiperiodic boundary
  std::int32_t source[leg_count];
  std::int32_t link[leg_count];  // in links of the link array
};
inline constexpr int boundary_bit = 16;
inline constexpr std::uint32_t remote_legs = 0xaaaa;  // of Leg::received and Leg::merged

// Indices of lanes. They are as wide as Real, since the vectors of the compiler need that.
template <class Real>
struct IndexOf;
template <>
struct IndexOf<float> {
  using type = std::int32_t;
};
template <>
struct IndexOf<double> {
  using type = std::int64_t;
};
inline constexpr int max_lanes = 16;

// How each leg moves lanes. `send` joins two vectors of a face into one; `merge[k]` puts the lanes
// of vector k of such a pair in place, where indices from `lanes` up name those of the received
// vector.
template <class Real>
struct LaneTables {
  using Index = typename IndexOf<Real>::type;
  alignas(64) Index permute[leg_count][max_lanes];
  alignas(64) Index send[leg_count][max_lanes];
  alignas(64) Index merge[leg_count][2][max_lanes];
  alignas(64) Real boundary[leg_count][max_lanes];  // sign of each lane on a boundary row
};

template <class Real>
struct HopArguments {
  const HopRow* rows = nullptr;
  std::ptrdiff_t row_count = 0;
  const std::int32_t* faces = nullptr;  // leg_count a row
  const LaneTables<Real>* lanes = nullptr;
  const Real* in = nullptr;
  Real* out = nullptr;
  const Real* links = nullptr;
  const void* received[leg_count] = {};
  const std::int16_t* exponents[leg_count] = {};  // of received packets of 16-bit numbers
  const Real* centre = nullptr;  // out = scale (hop + centre_factor centre); null: none
  Real centre_factor = 0;
  Real scale = 1;
  bool scaled = false;
  // More is read and written than the caches hold: links are fetched ahead, and results go past the
  // caches.
  bool from_memory = false;
  bool spinors_from_memory = false;  // neighbours are fetched ahead, too
  unsigned far = 0;                  // bit d: neighbours in dimension d lie far off in memory
  int inner = 1;                     // vectors of each component a vector site has
};

// Links::full: 9 vectors of complex numbers a link. two_rows: 6. scalar: 9 complex numbers, the
// same for all lanes.
enum class LinkForm { full, two_rows, scalar };
inline constexpr int link_form_count = 3;

// Where the eight links of a row lie. by_site: at their sites, backward legs using the neighbour's
// U. by_row: one after the other in the order of use, with U^+ for backward legs, so that all are
// multiplied in the same way and memory is read in one direction.
enum class LinkOrder { by_site, by_row };
inline constexpr int link_order_count = 2;
// The place of a leg among the eight links of a row (by_row): the kernels take the two legs of a
// dimension one after the other.
constexpr int place_in_row(int leg) { return 2 * (leg % 4) + leg / 4; }

// Rows begin to end of `count` fields at once, which differ in the fields, faces and factors alone:
// links of a row are read, or computed, for the first of them and lie in the caches for the others.
template <class Real>
using HopFunction = void (*)(const HopArguments<Real>* fields, int count, std::ptrdiff_t begin,
                             std::ptrdiff_t end);

// Projects the sites of a face for the leg of the rank that receives them. A face is packets of 12
// vectors, of Reals or of 16-bit numbers with an exponent for each packet (half.inc).
template <class Real>
struct FaceArguments {
  const std::int32_t* sites = nullptr;
  std::ptrdiff_t count = 0;
  const Real* in = nullptr;
  void* out = nullptr;
  std::int16_t* exponents = nullptr;  // of packets of 16-bit numbers; null: packets are of Reals
  int inner = 1;
  bool pairs = false;   // the dimension is cut into two blocks
  bool stream = false;  // past the caches
  const LaneTables<Real>* lanes = nullptr;
};
// Sites begin to end of the face; begin even where sites go in pairs.
template <class Real>
using FaceFunction = void (*)(const FaceArguments<Real>&, std::ptrdiff_t begin, std::ptrdiff_t end);

// Arguments of the operator along the fifth dimension, for the upper (P_+) and lower (P_-) spins.
inline constexpr int max_fifth_extent = 256;
template <class Real>
struct FifthArguments {
  const Real* in = nullptr;
  Real* out = nullptr;
  int inner = 1;
  bool from_below[2] = {true, false};  // takes from slice s - 1
  Real diagonal = 1;
  Real mass = 0;
  const Real* closing = nullptr;  // lanes in space, inverse: by slice along the direction
  const Real* matrix[2] = {};     // lanes in s, inverse
  const typename LaneTables<Real>::Index* rotate[2] = {};  // lanes in s
  const Real* edge[2] = {};                                // lanes in s: -1, and mass over the wall
};
template <class Real>
using FifthFunction = void (*)(const FifthArguments<Real>&, std::ptrdiff_t begin,
                               std::ptrdiff_t end);

template <class Real>
struct OperatorTable {
  const char* isa;
  int lanes;
  HopFunction<Real> hop[link_form_count][link_order_count][2];  // the last by dagger
  FaceFunction<Real> face[leg_count][2];
  FifthFunction<Real> fifth[2][2];  // by Vectors; by inverse
};

// Returns the numbers of lanes that this machine has, widest first; ROPEWALK_ISA limits them.
std::span<const int> lane_counts(std::size_t bytes_per_real);
template <class Real>
const OperatorTable<Real>& table(int lanes);

}  // namespace ropewalk::lattice::kernels
