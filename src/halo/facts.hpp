// What ranks must know of each other to make a halo. It is gathered once, whatever is chosen then.
#pragma once

#include <memory>
#include <string>

#include "channel/peer_memory.hpp"
#include "halo/draft.hpp"
#include "halo/links.hpp"
#include "halo/rank_table.hpp"
#include "halo/request.hpp"
#include "halo/shown_memory.hpp"
#include "halo/tags.hpp"
#include "halo/workers.hpp"
#include "node/team.hpp"
#include "transport/lane_set.hpp"

namespace ropewalk::halo {

// A row of the table has this where there is no room for memory.
inline constexpr std::uint64_t no_memory = UINT64_MAX;

// These facts are the same on all ranks, but for links and for what `lane_set`, `workers`,
// `team` and `memory` hold.
struct HaloFacts {
  Links links;
  Links near;            // to neighbours on the node of this rank, itself included
  Links far;             // to neighbours on other nodes
  bool several = false;  // nodes
  bool threads = false;  // the endpoints of every rank have comm threads
  Tags tags;             // none where no messages are sent
  std::shared_ptr<transport::LaneSet> lane_set;
  std::shared_ptr<Workers> workers;  // of this rank
  // The team of the ranks of this rank's node.
  node::Team* team = nullptr;   // null where nothing crosses from rank to rank, or nobody wants it,
  std::string no_team;          // or neighbours cannot map each other's memory, for this reason
  Reach reach = Reach::mapped;  // of the caller's memory on the rank where it is worst, with a team
  // This is the memory of the team. It attaches private memory where `reach` says that there is
  // some and all ranks can.
  std::shared_ptr<channel::PeerMemory> memory;
  // The table begins with the geometry of what is exchanged: for faces one column for each
  // direction (bytes), for fields those of `field_column`. Candidates append where their memory
  // lies.
  RankTable table;

  // These are of a rank on the node of this one: its number in the team, and the base of its arena
  // as it is mapped here.
  int place(int rank) const { return lane_set->nodes().place(rank); }
  std::byte* base(int rank) const { return team->base(place(rank)); }
  Labels labels() const { return {tags.first(), lane_set->lanes(), links.directions}; }
  // Field `field` has the columns: element bytes, then ghost widths, then interior extents.
  static std::size_t field_column(std::size_t field, std::size_t dimensions) {
    return field * (1 + 2 * dimensions);
  }
  static std::size_t ghost_column(std::size_t field, std::size_t dimensions) {
    return field_column(field, dimensions) + 1;
  }
  static std::size_t interior_column(std::size_t field, std::size_t dimensions) {
    return ghost_column(field, dimensions) + dimensions;
  }
};

// Says what the carriers that come into question want of the facts.
struct Wants {
  bool messages = false;
  bool team = false;
};

// Collective, with a request that this rank has found right by itself. Throws Error(argument) on
// every rank where ranks ask for different exchanges, or where grid and endpoints do not belong
// together. The row of this rank in the table has the geometry, and is not gathered yet.
HaloFacts agree_on_setup(const HaloRequest&, const Wants&);

// Compares the gathered table. Throws Error(argument) where neighbours disagree about what they
// exchange.
void check_neighbours(const HaloRequest&, const HaloFacts&);

}  // namespace ropewalk::halo
