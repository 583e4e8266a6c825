// Facts first, verdict afterwards: nothing here leaves a rank waiting for one that has thrown.
#include "halo/checks.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>

#include "halo/joint.hpp"
#include "halo/regions.hpp"

namespace ropewalk::halo {

namespace {

constexpr std::size_t max_dimensions = CartesianGrid::max_dimensions;

// Of a face in memory of the halo: twelve of them, twice, can still be counted.
constexpr std::size_t most_face_bytes = SIZE_MAX >> 6;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::argument, message); }

void check_endpoints(const CartesianGrid& grid, const EndpointSet& endpoints,
                     const HaloOptions& options) {
  if (endpoints.size() != grid.size()) {
    refuse("endpoints: made on a communicator of " + std::to_string(endpoints.size()) +
           " ranks, expected the " + std::to_string(grid.size()) +
           " of the grid; make grid and endpoints from the same communicator");
  }
  if (endpoints.rank() != grid.rank()) {
    refuse("endpoints: this is rank " + std::to_string(endpoints.rank()) +
           " of their communicator and rank " + std::to_string(grid.rank()) +
           " of the grid's; make grid and endpoints from the same communicator");
  }
  if (options.strategy == Strategy::threaded && !endpoints.has_threads()) {
    refuse(
        "strategy: threaded, but the endpoints have no comm threads, expected at least one lane "
        "with a thread; make the EndpointSet with threads = true and lanes >= 1, or choose "
        "concurrent");
  }
}

void check_options(const HaloOptions& options, Form form) {
  if (options.strategy < Strategy::automatic || options.strategy > Strategy::put) {
    refuse("strategy: " + std::to_string(static_cast<int>(options.strategy)) +
           ", expected 0 to 5; pass automatic, sequential, concurrent, threaded, direct or "
           "put");
  }
  if (options.strategy == Strategy::put && form != Form::sizes) {
    refuse(
        "strategy: put with buffers of the caller's, expected faces in memory of the halo; "
        "pass FaceSizes, or choose direct");
  }
  if (options.corners != Corners::no && options.corners != Corners::yes) {
    refuse("corners: " + std::to_string(static_cast<int>(options.corners)) +
           ", expected 0 or 1; pass Corners::no or Corners::yes");
  }
}

std::vector<Fact> setup_facts(const CartesianGrid& grid, const EndpointSet& endpoints,
                              const HaloOptions& options, Form form, std::size_t fields) {
  std::vector<Fact> out{{"halo: faces (0), fields (1) or sizes (2)", static_cast<int>(form)},
                        {"fields", static_cast<std::int64_t>(fields)},
                        {"strategy", static_cast<std::int64_t>(options.strategy)},
                        {"corners", options.corners == Corners::yes ? 1 : 0},
                        {"endpoints: lanes", endpoints.lanes()},
                        {"grid: number of dimensions", grid.dimensions()}};
  for (std::size_t d = 0; d < max_dimensions; ++d) {
    const std::string index = "[" + std::to_string(d) + "]";
    const bool has = d < grid.extents().size();
    out.push_back({"grid: extents" + index, has ? grid.extents()[d] : 0});
    out.push_back({"grid: periodic" + index, has && grid.periodic()[d] ? 1 : 0});
  }
  return out;
}

// A number that no other communicator's rank 0 draws: time, process and a count.
std::int64_t draw_token() {
  static std::atomic<std::int64_t> count{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const auto mixed = static_cast<std::uint64_t>(now) * 0x9e3779b97f4a7c15U ^
                     static_cast<std::uint64_t>(getpid()) * 0xff51afd7ed558ccdU ^
                     static_cast<std::uint64_t>(count.fetch_add(1));
  return static_cast<std::int64_t>(mixed >> 2);
}

// Two communicators can have equal sizes and ranks and still join other processes: what rank 0 of
// the grid's draws must be what all of the endpoints' hold.
void check_same_communicator(const CartesianGrid& grid, const EndpointSet& endpoints) {
  std::int64_t token = draw_token();
  mpi::broadcast(&token, sizeof token, 0, comm_of(grid));
  std::array<std::int64_t, 2> extremes{token, -token};
  mpi::all_reduce(extremes, mpi::Combine::max, {endpoints.communicator(0).handle()});
  jointly(comm_of(grid), [&] {
    if (extremes[0] != token || extremes[1] != -token) {
      refuse(
          "endpoints: their communicator joins other ranks than the grid's; make grid and "
          "endpoints from the same communicator");
    }
  });
}

std::string direction_name(std::size_t direction) {
  return std::string(direction % 2 == 0 ? "+" : "-") + " of dimension " +
         std::to_string(direction / 2);
}

int face_neighbour(const CartesianGrid& grid, std::size_t direction) {
  return grid.neighbour(static_cast<int>(direction / 2), direction % 2 == 0 ? 1 : -1);
}

void check_face_count(std::size_t count, const char* member, std::size_t expected) {
  if (count != expected) {
    refuse(std::string("faces.") + member + ": " + std::to_string(count) +
           " entries, expected 2 for each dimension of the grid, " + std::to_string(expected) +
           "; pass one towards + and one towards - of each");
  }
}

void check_own_faces(const CartesianGrid& grid, const FacePackets& faces) {
  const std::size_t expected = 2 * static_cast<std::size_t>(grid.dimensions());
  check_face_count(faces.send.size(), "send", expected);
  check_face_count(faces.receive.size(), "receive", expected);
  check_face_count(faces.bytes.size(), "bytes", expected);
  for (std::size_t i = 0; i < expected; ++i) {
    if (faces.bytes[i] == 0 || face_neighbour(grid, i) < 0) continue;
    if (faces.send[i] == nullptr || faces.receive[i] == nullptr) {
      refuse(std::string("faces.") + (faces.send[i] == nullptr ? "send[" : "receive[") +
             std::to_string(i) + "]: null with " + std::to_string(faces.bytes[i]) +
             " bytes, expected a buffer; allocate it, or pass 0 bytes to leave the direction out");
    }
  }
}

using FaceBytes = std::array<std::uint64_t, 2 * max_dimensions>;

void compare_faces(const CartesianGrid& grid, const std::vector<FaceBytes>& all) {
  const auto own = static_cast<std::size_t>(grid.rank());
  for (std::size_t i = 0; i < 2 * grid.extents().size(); ++i) {
    const int peer = face_neighbour(grid, i);
    if (peer < 0) continue;
    const std::uint64_t theirs = all[static_cast<std::size_t>(peer)][i ^ 1U];
    if (theirs != all[own][i]) {
      refuse("faces.bytes[" + std::to_string(i) + "]: " + std::to_string(all[own][i]) +
             " bytes on rank " + std::to_string(own) + " towards " + direction_name(i) + ", " +
             std::to_string(theirs) + " on its neighbour rank " + std::to_string(peer) +
             " towards " + direction_name(i ^ 1U) + "; give both sides of a face equal bytes");
    }
  }
}

// Collective.
void check_both_sides(const CartesianGrid& grid, const std::vector<std::size_t>& bytes) {
  const mpi::Comm comm = comm_of(grid);
  FaceBytes own{};
  for (std::size_t i = 0; i < bytes.size(); ++i) own[i] = bytes[i];
  std::vector<FaceBytes> all(static_cast<std::size_t>(grid.size()));
  mpi::all_gather(own.data(), all.data(), sizeof own, comm);
  jointly(comm, [&] { compare_faces(grid, all); });
}

using Interior = std::array<std::uint64_t, max_dimensions>;

std::vector<Fact> field_facts(const Field& field, std::size_t index) {
  const std::string name = "field[" + std::to_string(index) + "].";
  std::vector<Fact> out{{name + "element_bytes", static_cast<std::int64_t>(field.element_bytes)}};
  for (std::size_t d = 0; d < max_dimensions; ++d) {
    const std::size_t width = d < field.ghost.size() ? field.ghost[d] : 0;
    out.push_back({name + "ghost[" + std::to_string(d) + "]", static_cast<std::int64_t>(width)});
  }
  return out;
}

// Neighbours in one dimension must agree in the extents of all others, or their faces differ.
// Edges and corners follow: each is reached through face neighbours.
void compare_interiors(const CartesianGrid& grid, const Field& field, std::size_t index,
                       const std::vector<Interior>& all) {
  const auto own = static_cast<std::size_t>(grid.rank());
  for (std::size_t i = 0; i < 2 * grid.extents().size(); ++i) {
    const int peer = face_neighbour(grid, i);
    if (peer < 0 || field.ghost[i / 2] == 0) continue;
    for (std::size_t d = 0; d < grid.extents().size(); ++d) {
      const std::uint64_t theirs = all[static_cast<std::size_t>(peer)][d];
      if (d == i / 2 || theirs == all[own][d]) continue;
      refuse("field[" + std::to_string(index) + "].interior[" + std::to_string(d) +
             "]: " + std::to_string(all[own][d]) + " cells on rank " + std::to_string(own) + ", " +
             std::to_string(theirs) + " on rank " + std::to_string(peer) +
             ", its neighbour towards " + direction_name(i) +
             "; divide the field so that the faces of neighbours match");
    }
  }
}

void check_field_against_neighbours(const CartesianGrid& grid, const Field& field,
                                    std::size_t index) {
  const mpi::Comm comm = comm_of(grid);
  agree(comm, field_facts(field, index));
  Interior own{};
  for (std::size_t d = 0; d < field.interior.size(); ++d) own[d] = field.interior[d];
  std::vector<Interior> all(static_cast<std::size_t>(grid.size()));
  mpi::all_gather(own.data(), all.data(), sizeof own, comm);
  jointly(comm, [&] { compare_interiors(grid, field, index, all); });
}

}  // namespace

void check_setup(const CartesianGrid& grid, const EndpointSet& endpoints,
                 const HaloOptions& options, Form form, std::size_t fields) {
  const mpi::Comm comm = comm_of(grid);
  jointly(comm, [&] {
    check_options(options, form);
    check_endpoints(grid, endpoints, options);
    if (form == Form::fields && fields == 0) {
      refuse("fields: none, expected at least one; pass the arrays whose ghosts are exchanged");
    }
  });
  agree(comm, setup_facts(grid, endpoints, options, form, fields));
  check_same_communicator(grid, endpoints);
}

void check_faces(const CartesianGrid& grid, const FacePackets& faces) {
  jointly(comm_of(grid), [&] { check_own_faces(grid, faces); });
  check_both_sides(grid, faces.bytes);
}

void check_sizes(const CartesianGrid& grid, const FaceSizes& sizes) {
  jointly(comm_of(grid), [&] {
    check_face_count(sizes.bytes.size(), "bytes", 2 * static_cast<std::size_t>(grid.dimensions()));
    for (std::size_t i = 0; i < sizes.bytes.size(); ++i) {
      if (sizes.bytes[i] <= most_face_bytes) continue;
      throw Error(ErrorCode::memory, "faces.bytes[" + std::to_string(i) +
                                         "]: " + std::to_string(sizes.bytes[i]) +
                                         ", expected what fits in memory; send less at a time");
    }
  });
  check_both_sides(grid, sizes.bytes);
}

void check_fields(const CartesianGrid& grid, const std::vector<Field>& fields) {
  jointly(comm_of(grid), [&] {
    for (std::size_t i = 0; i < fields.size(); ++i) check_field(fields[i], i, grid);
  });
  for (std::size_t i = 0; i < fields.size(); ++i) {
    check_field_against_neighbours(grid, fields[i], i);
  }
}

}  // namespace ropewalk::halo
