#include "tables.hpp"

#include <unordered_map>

namespace ropewalk::lattice {

using kernels::Leg;
using kernels::leg_count;

namespace {

int block_of(const Layout& layout, int lane, int d) {
  for (int i = 0; i < d; ++i) lane /= layout.blocks()[i];
  return lane % layout.blocks()[d];
}

int with_block(const Layout& layout, int lane, int d, int block) {
  int stride = 1;
  for (int i = 0; i < d; ++i) stride *= layout.blocks()[i];
  return lane + (block - block_of(layout, lane, d)) * stride;
}

// Vector sites of a box of the sub-lattice, in the order of their places in memory but with both
// parities mixed: neighbours are near in time.
std::vector<std::size_t> box(const Layout& layout, Sites sites, const Extents& begin,
                             const Extents& end) {
  std::vector<std::size_t> out;
  for_each_site(layout.order(), begin, end, [&](const Extents& at) {
    const std::size_t v = layout.vector(at);
    if (sites == Sites::all || layout.parity(v) == sites) out.push_back(v);
  });
  return out;
}

std::vector<std::size_t> face(const Layout& layout, Sites sites, int d, int coordinate) {
  Extents begin{}, end = layout.extents();
  begin[d] = coordinate;
  end[d] = coordinate + 1;
  return box(layout, sites, begin, end);
}

// Returns the coordinate of the face that is sent for a leg of the receiver: its forward legs need
// first sites.
int sent_coordinate(const Layout& layout, int leg) {
  return forward(leg) ? 0 : layout.extents()[direction(leg)] - 1;
}

bool at_time_boundary(const Layout& layout, int leg, bool over_edge) {
  if (direction(leg) != 3 || !over_edge) return false;
  const Lattice& lattice = layout.lattice();
  return lattice.coordinates()[3] == (forward(leg) ? lattice.rank_grid()[3] - 1 : 0);
}

// Gives the place in the face by the vector site that is sent.
using FaceIndex = std::array<std::unordered_map<std::size_t, std::int32_t>, leg_count>;

struct Builder {
  const Layout& layout;
  Sites sites;
  bool antiperiodic;
  FaceIndex face_index;

  void add_face(HopTable& table, int leg) {
    const Sites from = opposite(sites);
    const auto offset = layout.first(from);
    for (const std::size_t v : face(layout, from, direction(leg), sent_coordinate(layout, leg))) {
      face_index[leg][v] = static_cast<std::int32_t>(table.face_sites[leg].size());
      table.face_sites[leg].push_back(static_cast<std::int32_t>(v - offset));
    }
  }

  kernels::HopRow row(std::size_t v, std::array<std::int32_t, leg_count>& faces) const {
    const Extents& site = layout.sub_lattice_site(v);
    kernels::HopRow out{};
    out.out = static_cast<std::int32_t>(v - layout.first(sites));
    for (int leg = 0; leg < leg_count; ++leg) {
      const Neighbour from = neighbour(layout, site, leg);
      const std::size_t w = layout.vector(from.site);
      out.source[leg] = static_cast<std::int32_t>(w - layout.first(opposite(sites)));
      const Leg kind = from.over_edge ? kind_over_edge(layout, leg) : Leg::local;
      out.legs |= static_cast<std::uint32_t>(kind) << (2 * leg);
      if (kind == Leg::received || kind == Leg::merged) faces[leg] = face_index[leg].at(w);
      if (antiperiodic && at_time_boundary(layout, leg, from.over_edge)) {
        out.legs |= 1u << (kernels::boundary_bit + leg);
      }
    }
    return out;
  }
};

}  // namespace

Neighbour neighbour(const Layout& layout, const Extents& site, int leg) {
  const int d = direction(leg), extent = layout.extents()[d];
  Neighbour out{site, site[d] == (forward(leg) ? extent - 1 : 0)};
  out.site[d] = (site[d] + (forward(leg) ? 1 : extent - 1)) % extent;
  return out;
}

Leg kind_over_edge(const Layout& layout, int leg) {
  const int d = direction(leg);
  const bool cut = layout.blocks()[d] > 1;
  if (layout.lattice().divided(d)) return cut ? Leg::merged : Leg::received;
  return cut ? Leg::permuted : Leg::local;
}

template <class Real>
kernels::LaneTables<Real> lane_tables(const Layout& layout) {
  using Index = typename kernels::LaneTables<Real>::Index;
  kernels::LaneTables<Real> out{};
  const int lanes = layout.lanes();
  for (int leg = 0; leg < leg_count; ++leg) {
    const int d = direction(leg), blocks = layout.blocks()[d];
    const int remote = forward(leg) ? blocks - 1 : 0;  // block whose neighbour is another rank's
    const int sent = forward(leg) ? 0 : blocks - 1;    // block that the other rank sends
    for (int lane = 0; lane < lanes; ++lane) {
      const int block = block_of(layout, lane, d);
      const int next = (block + (forward(leg) ? 1 : blocks - 1)) % blocks;
      const auto own = static_cast<Index>(with_block(layout, lane, d, next));
      const auto mate = static_cast<Index>(with_block(layout, lane, d, sent));
      const bool far = block == remote;
      out.permute[leg][lane] = own;
      out.send[leg][lane] = far ? mate : static_cast<Index>(lanes + lane);
      out.merge[leg][0][lane] = far ? static_cast<Index>(lanes + lane) : own;
      out.merge[leg][1][lane] = far ? static_cast<Index>(lanes) + mate : own;
      out.boundary[leg][lane] = d == 3 && far ? Real(-1) : Real(1);
    }
  }
  return out;
}

HopTable hop_table(const Layout& layout, Sites sites, bool antiperiodic) {
  HopTable out;
  Builder builder{layout, sites, antiperiodic, {}};
  for (int leg = 0; leg < leg_count; ++leg) {
    if (layout.lattice().divided(direction(leg))) builder.add_face(out, leg);
  }
  for (const std::size_t v : box(layout, sites, {}, layout.extents())) {
    std::array<std::int32_t, leg_count> faces{};
    out.rows.push_back(builder.row(v, faces));
    out.faces.insert(out.faces.end(), faces.begin(), faces.end());
    out.surface += needs_other_rank(out.rows.back()) ? 1 : 0;
  }
  return out;
}

LinkSlots link_slots(const Layout& layout) {
  LinkSlots out;
  const std::size_t count = layout.vector_sites();
  out.slot.resize(count);
  for (std::size_t v = 0; v < count; ++v) {
    for (int leg = 0; leg < leg_count; ++leg) {
      if (forward(leg)) {
        out.slot[v][leg] = static_cast<std::int32_t>(v * dimensions) + leg;
        continue;
      }
      const Neighbour from = neighbour(layout, layout.sub_lattice_site(v), leg);
      if (!from.over_edge || kind_over_edge(layout, leg) == Leg::local) {
        out.slot[v][leg] =
            static_cast<std::int32_t>(layout.vector(from.site) * dimensions) + direction(leg);
        continue;
      }
      out.slot[v][leg] = static_cast<std::int32_t>(count * dimensions + out.extras.size());
      out.extras.push_back({static_cast<std::int32_t>(v), direction(leg)});
    }
  }
  return out;
}

template kernels::LaneTables<float> lane_tables<float>(const Layout&);
template kernels::LaneTables<double> lane_tables<double>(const Layout&);

}  // namespace ropewalk::lattice
