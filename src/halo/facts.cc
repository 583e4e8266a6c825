// One reduction says that all ranks ask for the same, and one table what each of them has.
#include "halo/facts.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <utility>

#include "mpi/collectively.hpp"
#include "topology/machine.hpp"
#include "transport/access.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::halo {

namespace {

constexpr std::size_t max_dimensions = CartesianGrid::max_dimensions;

// Returns the dimensions in which anything is exchanged.
std::vector<bool> wide_dimensions(const HaloRequest& request) {
  if (request.form != Form::fields) return std::vector<bool>(request.dimensions(), true);
  std::vector<bool> wide(request.dimensions(), false);
  for (const Field& field : request.fields) {
    for (std::size_t d = 0; d < wide.size(); ++d) wide[d] = wide[d] || field.ghost[d] > 0;
  }
  return wide;
}

std::vector<mpi::Fact> setup_facts(const HaloRequest& request, const std::vector<bool>& wide) {
  const CartesianGrid& grid = request.grid;
  std::vector<mpi::Fact> out{
      {"halo: faces (0), fields (1) or buffers (2)", static_cast<int>(request.form)},
      {"fields", static_cast<std::int64_t>(request.fields.size())},
      {"strategy", static_cast<std::int64_t>(request.options.strategy)},
      {"corners", request.options.corners == Corners::yes ? 1 : 0},
      {"parts", request.options.parts},
      {"endpoints: lanes", request.endpoints.lanes()},
      {"grid: number of dimensions", grid.dimensions()}};
  for (std::size_t d = 0; d < max_dimensions; ++d) {
    const std::string index = "[" + std::to_string(d) + "]";
    const bool has = d < grid.extents().size();
    out.push_back({"grid: extents" + index, has ? grid.extents()[d] : 0});
    out.push_back({"grid: periodic" + index, has && grid.periodic()[d] ? 1 : 0});
    out.push_back(
        {"field: ghost" + index + " of any field, none (0) or some (1)", has && wide[d] ? 1 : 0});
  }
  return out;
}

// Draws a number that rank 0 of no other communicator draws, from time, process and a count.
std::int64_t draw_token() {
  static std::atomic<std::int64_t> count{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const auto mixed = static_cast<std::uint64_t>(now) * 0x9e3779b97f4a7c15U ^
                     static_cast<std::uint64_t>(getpid()) * 0xff51afd7ed558ccdU ^
                     static_cast<std::uint64_t>(count.fetch_add(1));
  return static_cast<std::int64_t>(mixed >> 2);
}

// Two communicators can have equal sizes and ranks and still join other processes. So rank 0 of the
// grid draws a token, and all ranks of the endpoints must hold the same one. Collective over the
// communicator of the endpoints.
void check_same_communicator(const EndpointSet& endpoints, std::int64_t token) {
  mpi::Extremes tokens(token);
  mpi::all_reduce(tokens.values(), mpi::Combine::max, {endpoints.communicator(0).handle()});
  if (!tokens.same()) {
    refuse(
        "endpoints: their communicator joins other ranks than the grid's; make grid and "
        "endpoints from the same communicator");
  }
}

void append_geometry(RankTable& table, const HaloRequest& request) {
  for (const std::size_t bytes : request.faces.bytes) table.append(bytes);
  for (const Field& field : request.fields) {
    table.append(field.element_bytes);
    for (const std::size_t width : field.ghost) table.append(width);
    for (const std::size_t extent : field.interior) table.append(extent);
  }
}

std::string direction_name(std::size_t direction) {
  return std::string(direction % 2 == 0 ? "+" : "-") + " of dimension " +
         std::to_string(direction / 2);
}

void compare_faces(const CartesianGrid& grid, const RankTable& table) {
  const int own = grid.rank();
  for (std::size_t i = 0; i < 2 * grid.extents().size(); ++i) {
    const int peer = face_neighbour(grid, i);
    if (peer < 0) continue;
    const std::uint64_t theirs = table.at(peer, i ^ 1U);
    if (theirs != table.at(own, i)) {
      refuse("faces.bytes[" + std::to_string(i) + "]: " + std::to_string(table.at(own, i)) +
             " bytes on rank " + std::to_string(own) + " towards " + direction_name(i) + ", " +
             std::to_string(theirs) + " on its neighbour rank " + std::to_string(peer) +
             " towards " + direction_name(i ^ 1U) + "; give both sides of a face equal bytes");
    }
  }
}

void compare_with_rank_0(const CartesianGrid& grid, const RankTable& table, std::size_t column,
                         const std::string& name) {
  for (int rank = 1; rank < grid.size(); ++rank) {
    if (table.at(rank, column) == table.at(0, column)) continue;
    refuse(name + ": " + std::to_string(table.at(0, column)) + " on rank 0, " +
           std::to_string(table.at(rank, column)) + " on rank " + std::to_string(rank) +
           ", expected the same on all; pass the same on every rank");
  }
}

// Neighbours in one dimension must agree in the extents of all others, or their faces differ.
// Edges and corners follow: each is reached through neighbours that share a face.
void compare_interiors(const HaloRequest& request, const RankTable& table, std::size_t field) {
  const CartesianGrid& grid = request.grid;
  const std::size_t column = HaloFacts::interior_column(field, request.dimensions());
  const int own = grid.rank();
  for (std::size_t i = 0; i < 2 * request.dimensions(); ++i) {
    const int peer = face_neighbour(grid, i);
    if (peer < 0 || request.fields[field].ghost[i / 2] == 0) continue;
    for (std::size_t d = 0; d < request.dimensions(); ++d) {
      const std::uint64_t ours = table.at(own, column + d);
      const std::uint64_t theirs = table.at(peer, column + d);
      if (d == i / 2 || theirs == ours) continue;
      refuse("field[" + std::to_string(field) + "].interior[" + std::to_string(d) +
             "]: " + std::to_string(ours) + " cells on rank " + std::to_string(own) + ", " +
             std::to_string(theirs) + " on rank " + std::to_string(peer) +
             ", its neighbour towards " + direction_name(i) +
             "; divide the field so that the faces of neighbours match");
    }
  }
}

void compare_field(const HaloRequest& request, const RankTable& table, std::size_t field) {
  const std::size_t dimensions = request.dimensions();
  const std::string name = "field[" + std::to_string(field) + "].";
  compare_with_rank_0(request.grid, table, HaloFacts::field_column(field, dimensions),
                      name + "element_bytes");
  for (std::size_t d = 0; d < dimensions; ++d) {
    compare_with_rank_0(request.grid, table, HaloFacts::ghost_column(field, dimensions) + d,
                        name + "ghost[" + std::to_string(d) + "]");
  }
  compare_interiors(request, table, field);
}

// Collective. Joins the ranks to a team, and finds how they reach each other's memory.
void join_team(const HaloRequest& request, HaloFacts& facts) {
  mpi::meet(request.comm());  // the endpoints may have another communicator
  facts.team = facts.lane_set->team(facts.no_team);
  if (facts.team == nullptr) return;
  // Whatever its size: memory is attached once for all exchanges.
  constexpr channel::PeerMemory::Worth any{.attached = 0, .by_kernel = 0};
  facts.memory = std::make_shared<channel::PeerMemory>(*facts.team, any);
  if (facts.reach != Reach::by_kernel) return;
  const auto attach = [&facts] {
    std::string reason;
    facts.memory->attach_with(channel::Attachments::create(*facts.team, reason));
  };
  facts.several ? mpi::collectively(facts.team->comm(), attach) : attach();
}

void find_nodes(HaloFacts& facts) {
  const transport::NodeNumbers& nodes = facts.lane_set->nodes();
  facts.several = nodes.several();
  facts.near =
      links_that(facts.links, [&](const Link& link) { return nodes.shares_own(link.peer); });
  facts.far =
      links_that(facts.links, [&](const Link& link) { return !nodes.shares_own(link.peer); });
}

// Each rank has as many as it asks for, and nobody else needs to know. What the caller may use says
// little of the others' cores: OpenMP binds it to a single one. So only more threads than the
// machine has CPUs keep workers from sharing copies.
std::shared_ptr<Workers> make_workers(const HaloRequest& request, const HaloFacts& facts) {
  const int count = request.options.workers;
  const transport::NodeNumbers& nodes = facts.lane_set->nodes();
  const auto ranks = std::ranges::count(nodes.of, nodes.own);
  const bool crowded = count * ranks > topology::usable_cpus().count();
  const bool exceeds_machine = count * ranks > sysconf(_SC_NPROCESSORS_ONLN);
  std::size_t bytes = 0;
  for (const Link& link : facts.links.present) bytes += link_bytes(request, link);
  const int sharing = sharing_workers(count, bytes, tuning::halo_worker_bytes(exceeds_machine));
  return std::make_shared<Workers>(count, sharing, crowded);
}

}  // namespace

HaloFacts agree_on_setup(const HaloRequest& request, const Wants& wants) {
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  const mpi::Comm comm = request.comm();
  const std::vector<bool> wide = wide_dimensions(request);
  HaloFacts out;
  out.links = links(request.grid, request.options.corners, wide);
  out.lane_set = transport::Access::lanes(request.endpoints);
  find_nodes(out);
  out.workers = make_workers(request, out);
  const bool messages = wants.messages || (wants.team && out.several);
  const int tags = messages ? out.links.directions : 0;
  TagProposal proposal = propose_tags(*out.lane_set, tags);
  const Reach reach = wants.team ? reach_of(shown_memory(request, out.near)) : Reach::mapped;
  // The reduction gives the largest of each over the ranks: a token, whether there is a rank
  // without threads, tags, and how hard to reach memory is.
  std::array<std::int64_t, 5> largest{request.grid.rank() == 0 ? draw_token() : lowest,
                                      request.endpoints.has_threads() ? 0 : 1, proposal[0],
                                      proposal[1], static_cast<std::int64_t>(reach)};
  mpi::same_on_all(comm, setup_facts(request, wide), largest);
  // Since that call nothing has failed on one rank alone, so all ranks come to the next one.
  check_same_communicator(request.endpoints, largest[0]);
  out.threads = largest[1] == 0;
  out.tags = Tags(comm, out.lane_set, tags, {largest[2], largest[3]});
  out.reach = static_cast<Reach>(largest[4]);
  if (wants.team && out.links.directions > 0) join_team(request, out);
  append_geometry(out.table, request);
  return out;
}

void check_neighbours(const HaloRequest& request, const HaloFacts& facts) {
  if (request.form != Form::fields) return compare_faces(request.grid, facts.table);
  for (std::size_t f = 0; f < request.fields.size(); ++f) compare_field(request, facts.table, f);
}

}  // namespace ropewalk::halo
