// The tables of a hop: its rows, the faces it sends, and how lanes are permuted at the edges.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/kernels.hpp"
#include "ropewalk/lattice/fields.hpp"

namespace ropewalk::lattice {

// Complex numbers of a link, which is an SU(3) matrix, and of the spinor of a site.
constexpr std::size_t link_complex = 9;
constexpr std::size_t spinor_complex = 12;

inline int direction(int leg) { return leg % dimensions; }
inline bool forward(int leg) { return leg < dimensions; }

// Returns the parity that a hop onto these sites reads.
inline Sites opposite(Sites sites) {
  if (sites == Sites::all) return Sites::all;
  return sites == Sites::even ? Sites::odd : Sites::even;
}

// Calls visit(site) for all sites of a box; dimension order[0] is the fastest.
template <class Visit>
void for_each_site(const Extents& order, const Extents& begin, const Extents& end, Visit visit) {
  Extents at = begin;
  const auto [a, b, c, d] = order;
  for (at[d] = begin[d]; at[d] < end[d]; ++at[d]) {
    for (at[c] = begin[c]; at[c] < end[c]; ++at[c]) {
      for (at[b] = begin[b]; at[b] < end[b]; ++at[b]) {
        for (at[a] = begin[a]; at[a] < end[a]; ++at[a]) visit(at);
      }
    }
  }
}

// The site a leg comes from, within its sub-lattice; and whether it lies over the edge.
struct Neighbour {
  Extents site;
  bool over_edge;
};
Neighbour neighbour(const Layout&, const Extents& site, int leg);

// How a site gets the half spinor of a leg that crosses the edge of the sub-lattices.
kernels::Leg kind_over_edge(const Layout&, int leg);

template <class Real>
kernels::LaneTables<Real> lane_tables(const Layout&);

// Rows of the hop onto `sites`, in the order in which they are computed.
struct HopTable {
  std::vector<kernels::HopRow> rows;
  std::vector<std::int32_t> faces;  // kernels::leg_count a row
  std::ptrdiff_t surface = 0;       // rows that need other ranks
  // For each leg, the sites of the input (numbered in its field) that this rank sends to the rank
  // that needs them for that leg.
  std::array<std::vector<std::int32_t>, kernels::leg_count> face_sites;
};
inline bool needs_other_rank(const kernels::HopRow& row) {
  return (row.legs & kernels::remote_legs) != 0;
}
// HopRow::link is left to who owns the links. antiperiodic: marks the legs over the boundary of t.
HopTable hop_table(const Layout&, Sites sites, bool antiperiodic);

// Links by site: slot 4 v + mu is U_mu at vector site v. What a backward leg needs from over an
// edge, with lanes permuted or from another rank, has a slot of its own behind these.
struct LinkSlots {
  std::vector<std::array<std::int32_t, kernels::leg_count>> slot;  // by vector site
  struct Extra {
    std::int32_t vector;
    int mu;
  };
  std::vector<Extra> extras;  // slots from 4 x vector sites on: backward leg mu of that site
};
LinkSlots link_slots(const Layout&);

}  // namespace ropewalk::lattice
