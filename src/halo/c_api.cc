// The C interface of grids and halos. A null pointer on one rank is an error on all of them, as far
// as there is a communicator to tell the others by.
#include <string>
#include <utility>
#include <vector>

#include "c_call.hpp"
#include "halo/c_halo.hpp"
#include "halo/checks.hpp"
#include "halo/joint.hpp"
#include "ropewalk/halo.hpp"
#include "transport/c_endpoints.hpp"

struct rw_grid {
  ropewalk::CartesianGrid grid;
};

namespace ropewalk {

namespace {

// Collective over the communicator of what is there: a grid or endpoints passed as NULL.
void require_handles(const rw_grid* grid, const rw_endpoints* endpoints, const void* out) {
  const auto require = [&] {
    require_argument(grid, "grid");
    require_argument(endpoints, "endpoints");
    require_argument(out, "out");
  };
  if (grid != nullptr) {
    halo::jointly(halo::comm_of(grid->grid), require);
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

std::vector<Field> fields_of(int count, const rw_field* field, int dimensions) {
  if (count < 1) {
    throw Error(ErrorCode::argument, "fields: " + std::to_string(count) +
                                         ", expected at least 1; pass the number of fields");
  }
  require_argument(field, "field");
  std::vector<Field> out;
  for (int i = 0; i < count; ++i) {
    const std::string name = "field[" + std::to_string(i) + "]";
    require_argument(field[i].interior, (name + ".interior").c_str());
    require_argument(field[i].ghost, (name + ".ghost").c_str());
    out.push_back({field[i].data, field[i].element_bytes, values(field[i].interior, dimensions),
                   values(field[i].ghost, dimensions)});
  }
  return out;
}

HaloOptions options(int strategy, int corners) {
  return {static_cast<Strategy>(strategy), static_cast<Corners>(corners)};
}

// Reads the arrays of the caller; where they are NULL on one rank, every rank throws.
template <class Read>
auto read_jointly(const rw_grid* grid, Read&& read) {
  decltype(read()) out;
  halo::jointly(halo::comm_of(grid->grid), [&] { out = read(); });
  return out;
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

}  // namespace

}  // namespace ropewalk

using ropewalk::c_call;
using ropewalk::require_argument;

extern "C" {

int rw_grid_create(rw_mpi_comm comm, int dimensions, const int* extents, const int* periodic,
                   rw_grid** out) {
  return c_call([&] {
    const ropewalk::Communicator communicator(comm);
    ropewalk::halo::jointly({communicator.handle()}, [&] {
      ropewalk::check_grid_arguments(dimensions, extents, periodic, out);
    });
    std::vector<bool> wraps(periodic, periodic + dimensions);
    *out = new rw_grid{
        ropewalk::CartesianGrid(communicator, {extents, extents + dimensions}, std::move(wraps))};
  });
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

int rw_halo_faces(const rw_grid* grid, rw_endpoints* endpoints, const void* const* send,
                  void* const* receive, const size_t* bytes, int strategy, rw_halo** out) {
  return c_call([&] {
    ropewalk::require_handles(grid, endpoints, out);
    const ropewalk::FacePackets faces = ropewalk::read_jointly(grid, [&] {
      return ropewalk::face_packets(send, receive, bytes, grid->grid.dimensions());
    });
    *out = new rw_halo{
        ropewalk::Halo(grid->grid, endpoints->set, faces, ropewalk::options(strategy, 0))};
  });
}

int rw_halo_fields(const rw_grid* grid, rw_endpoints* endpoints, int fields, const rw_field* field,
                   int corners, int strategy, rw_halo** out) {
  return c_call([&] {
    ropewalk::require_handles(grid, endpoints, out);
    const std::vector<ropewalk::Field> read = ropewalk::read_jointly(
        grid, [&] { return ropewalk::fields_of(fields, field, grid->grid.dimensions()); });
    *out = new rw_halo{
        ropewalk::Halo(grid->grid, endpoints->set, read, ropewalk::options(strategy, corners))};
  });
}

int rw_halo_sizes(const rw_grid* grid, rw_endpoints* endpoints, const size_t* bytes, int strategy,
                  rw_halo** out) {
  return c_call([&] {
    ropewalk::require_handles(grid, endpoints, out);
    const ropewalk::FaceSizes sizes = ropewalk::read_jointly(grid, [&] {
      require_argument(bytes, "bytes");
      return ropewalk::FaceSizes{ropewalk::values(bytes, 2 * grid->grid.dimensions())};
    });
    *out = new rw_halo{
        ropewalk::Halo(grid->grid, endpoints->set, sizes, ropewalk::options(strategy, 0))};
  });
}

void* rw_halo_send_buffer(const rw_halo* halo, int direction) {
  return halo == nullptr ? nullptr : halo->halo.send_buffer(direction);
}

const void* rw_halo_receive_buffer(const rw_halo* halo, int direction) {
  return halo == nullptr ? nullptr : halo->halo.receive_buffer(direction);
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

int rw_halo_free(rw_halo* halo) {
  return c_call([&] { delete halo; });
}

}  // extern "C"
