// This file is the C interface of grids and halos. A null pointer on one rank is an error on all of
// them, as far as there is a communicator to tell the others by.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "c_call.hpp"
#include "c_struct.hpp"
#include "halo/c_halo.hpp"
#include "halo/request.hpp"
#include "mpi/collectively.hpp"
#include "ropewalk/halo.hpp"
#include "transport/c_endpoints.hpp"

struct rw_grid {
  ropewalk::CartesianGrid grid;
};

namespace ropewalk {

namespace {

// Collective over the communicator of whichever handle is there: a grid or endpoints may have been
// passed as NULL.
void require_handles(const rw_grid* grid, const rw_endpoints* endpoints, const void* out) {
  const auto require = [&] {
    require_argument(grid, "grid");
    require_argument(endpoints, "endpoints");
    require_argument(out, "out");
  };
  if (grid != nullptr) {
    mpi::collectively(halo::comm_of(grid->grid), require);
  } else {
    require();
  }
}

std::vector<std::size_t> values(const std::size_t* array, int count) {
  return std::vector<std::size_t>(array, array + count);
}

FacePackets face_packets(const void* const* send, void* const* receive, const std::size_t* bytes,
                         int dimensions) {
  require_argument(send, "send");
  require_argument(receive, "receive");
  require_argument(bytes, "bytes");
  const int count = 2 * dimensions;
  // In parentheses: in braces the two ends would be taken for two packets.
  return {std::vector<const void*>(send, send + count),
          std::vector<void*>(receive, receive + count), values(bytes, count)};
}

Field field_of(const rw_field& field, int dimensions, const std::string& name) {
  require_argument(field.interior, (name + ".interior").c_str());
  require_argument(field.ghost, (name + ".ghost").c_str());
  return {field.data, field.element_bytes, values(field.interior, dimensions),
          values(field.ghost, dimensions)};
}

std::vector<Field> fields_of(int count, const rw_field* field, int dimensions) {
  if (count < 1) {
    throw Error(ErrorCode::argument, "fields: " + std::to_string(count) +
                                         ", expected at least 1; pass the number of fields");
  }
  require_argument(field, "field");
  constexpr std::size_t oldest = offsetof(rw_field, ghost) + sizeof(rw_field::ghost);
  const auto* next = reinterpret_cast<const std::byte*>(field);
  std::vector<Field> out;
  for (int i = 0; i < count; ++i, next += field->size) {
    const std::string name = "field[" + std::to_string(i) + "]";
    const rw_field one = read_struct<rw_field>(next, oldest, RW_FIELD_INIT, name, "rw_field");
    if (one.size != field->size) {
      throw Error(ErrorCode::argument,
                  name + ".size: " + std::to_string(one.size) + ", expected that of field[0], " +
                      std::to_string(field->size) + "; pass an array of one type");
    }
    out.push_back(field_of(one, dimensions, name));
  }
  return out;
}

HaloOptions options_of(const rw_halo_options* given) {
  constexpr std::size_t oldest = offsetof(rw_halo_options, corners) + sizeof(int);
  rw_halo_options options = RW_HALO_OPTIONS_INIT;
  if (given != nullptr) {
    options = read_struct<rw_halo_options>(given, oldest, options, "options", "rw_halo_options");
  }
  return {static_cast<Strategy>(options.strategy), static_cast<Corners>(options.corners),
          options.parts, options.workers == 0 ? 1 : options.workers};
}

// Reads what the caller has passed by `read`; where it is wrong on one rank, every rank throws.
template <class Read>
void create_halo(const rw_grid* grid, rw_endpoints* endpoints, const rw_halo_options* given,
                 rw_halo** out, Read&& read) {
  require_handles(grid, endpoints, out);
  decltype(read()) what;
  HaloOptions options;
  mpi::collectively(halo::comm_of(grid->grid), [&] {
    what = read();
    options = options_of(given);
  });
  *out = new rw_halo{Halo(grid->grid, endpoints->set, what, options)};
}

void check_grid_arguments(int dimensions, const int* extents, const int* periodic,
                          const void* out) {
  require_argument(extents, "extents");
  require_argument(periodic, "periodic");
  require_argument(out, "out");
  if (dimensions < 1 || dimensions > CartesianGrid::max_dimensions) {
    throw Error(ErrorCode::argument, "dimensions: " + std::to_string(dimensions) +
                                         ", expected 1 to 6; pass the number of extents");
  }
}

int create_grid(rw_mpi_comm comm, int dimensions, const int* extents, const int* periodic,
                RankOrder order, rw_grid** out) {
  return c_call([&] {
    const Communicator communicator(comm);
    mpi::collectively({communicator.handle()},
                      [&] { check_grid_arguments(dimensions, extents, periodic, out); });
    std::vector<bool> wraps(periodic, periodic + dimensions);
    *out = new rw_grid{
        CartesianGrid(communicator, {extents, extents + dimensions}, std::move(wraps), order)};
  });
}

}  // namespace

}  // namespace ropewalk

using ropewalk::c_call;
using ropewalk::require_argument;

extern "C" {

int rw_grid_create(rw_mpi_comm comm, int dimensions, const int* extents, const int* periodic,
                   rw_grid** out) {
  return ropewalk::create_grid(comm, dimensions, extents, periodic, ropewalk::RankOrder::row_major,
                               out);
}

int rw_grid_create_by_node(rw_mpi_comm comm, int dimensions, const int* extents,
                           const int* periodic, rw_grid** out) {
  return ropewalk::create_grid(comm, dimensions, extents, periodic, ropewalk::RankOrder::by_node,
                               out);
}

int rw_grid_free(rw_grid* grid) {
  return c_call([&] { delete grid; });
}

int rw_grid_coordinates(const rw_grid* grid, int* out) {
  return c_call([&] {
    require_argument(grid, "grid");
    require_argument(out, "out");
    for (int coordinate : grid->grid.coordinates()) *out++ = coordinate;
  });
}

int rw_grid_neighbour(const rw_grid* grid, int dimension, int direction, int* out) {
  return c_call([&] {
    require_argument(grid, "grid");
    require_argument(out, "out");
    *out = grid->grid.neighbour(dimension, direction);
  });
}

int rw_halo_create_faces(const rw_grid* grid, rw_endpoints* endpoints, const void* const* send,
                         void* const* receive, const size_t* bytes, const rw_halo_options* options,
                         rw_halo** out) {
  return c_call([&] {
    ropewalk::create_halo(grid, endpoints, options, out, [&] {
      return ropewalk::face_packets(send, receive, bytes, grid->grid.dimensions());
    });
  });
}

int rw_halo_create_fields(const rw_grid* grid, rw_endpoints* endpoints, int fields,
                          const rw_field* field, const rw_halo_options* options, rw_halo** out) {
  return c_call([&] {
    ropewalk::create_halo(grid, endpoints, options, out, [&] {
      return ropewalk::fields_of(fields, field, grid->grid.dimensions());
    });
  });
}

int rw_halo_create_buffers(const rw_grid* grid, rw_endpoints* endpoints, const size_t* bytes,
                           const rw_halo_options* options, rw_halo** out) {
  return c_call([&] {
    ropewalk::create_halo(grid, endpoints, options, out, [&] {
      require_argument(bytes, "bytes");
      return ropewalk::HaloBuffers{ropewalk::values(bytes, 2 * grid->grid.dimensions())};
    });
  });
}

void* rw_halo_send_buffer(const rw_halo* halo, int direction) {
  return halo == nullptr ? nullptr : halo->halo.send_buffer(direction);
}

const void* rw_halo_receive_buffer(const rw_halo* halo, int direction) {
  return halo == nullptr ? nullptr : halo->halo.receive_buffer(direction);
}

int rw_halo_bytes(const rw_halo* halo, size_t* sent, size_t* to_other_nodes) {
  return c_call([&] {
    require_argument(halo, "halo");
    require_argument(sent, "sent");
    require_argument(to_other_nodes, "to_other_nodes");
    *sent = halo->halo.send_bytes();
    *to_other_nodes = halo->halo.wire_bytes();
  });
}

int rw_halo_start(rw_halo* halo) {
  return c_call([&] {
    require_argument(halo, "halo");
    halo->halo.start();
  });
}

int rw_halo_test(rw_halo* halo, int* done) {
  return c_call([&] {
    require_argument(halo, "halo");
    require_argument(done, "done");
    *done = halo->halo.test() ? 1 : 0;
  });
}

int rw_halo_wait(rw_halo* halo) {
  return c_call([&] {
    require_argument(halo, "halo");
    halo->halo.wait();
  });
}

int rw_halo_exchange(rw_halo* halo) {
  return c_call([&] {
    require_argument(halo, "halo");
    halo->halo.exchange();
  });
}

int rw_halo_start_worker(rw_halo* halo, int worker) {
  return c_call([&] {
    require_argument(halo, "halo");
    halo->halo.start_worker(worker);
  });
}

int rw_halo_wait_worker(rw_halo* halo, int worker) {
  return c_call([&] {
    require_argument(halo, "halo");
    halo->halo.wait_worker(worker);
  });
}

int rw_halo_ready(rw_halo* halo, int direction, int part) {
  return c_call([&] {
    require_argument(halo, "halo");
    halo->halo.ready(direction, part);
  });
}

int rw_halo_arrived(const rw_halo* halo, int direction, int part, int* there) {
  return c_call([&] {
    require_argument(halo, "halo");
    require_argument(there, "there");
    *there = halo->halo.arrived(direction, part) ? 1 : 0;
  });
}

int rw_halo_free(rw_halo* halo) {
  return c_call([&] { delete halo; });
}

}  // extern "C"
