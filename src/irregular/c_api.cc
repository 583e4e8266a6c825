// This file is the C interface of the exchange along lists of neighbors.
#include <memory>
#include <string>
#include <vector>

#include "c_call.hpp"
#include "c_types.hpp"
#include "ropewalk/collectively.hpp"
#include "ropewalk/irregular_halo.hpp"

struct rw_irregular_halo {
  ropewalk::IrregularHalo halo;
};

namespace ropewalk {
namespace {

std::vector<std::int64_t> indices(const std::int64_t* given, std::size_t count,
                                  const std::string& argument) {
  if (count != 0) require_argument(given, argument.c_str());
  return {given, given + count};
}

std::vector<Neighbor> neighbors_of(std::size_t count, const rw_neighbor* given) {
  if (count != 0) require_argument(given, "neighbor");
  std::vector<Neighbor> made;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = "neighbor[" + std::to_string(i) + "].";
    made.push_back({given[i].rank, indices(given[i].send, given[i].sends, name + "send"),
                    indices(given[i].receive, given[i].receives, name + "receive")});
  }
  return made;
}

template <class Halo, class Body>
int with_halo(Halo* halo, Body&& body) {
  return c_call([&] {
    require_argument(halo, "halo");
    body(halo->halo);
  });
}

}  // namespace
}  // namespace ropewalk

using ropewalk::c_call;
using ropewalk::IrregularHalo;
using ropewalk::require_argument;
using ropewalk::with_halo;

extern "C" {

int rw_irregular_halo_create(rw_mpi_comm comm, size_t neighbors, const rw_neighbor* neighbor,
                             size_t elements, size_t element_bytes, rw_irregular_halo** out) {
  return c_call([&] {
    const ropewalk::Communicator communicator(comm);
    std::vector<ropewalk::Neighbor> lists;
    ropewalk::collectively(communicator, [&] {
      require_argument(out, "out");
      lists = ropewalk::neighbors_of(neighbors, neighbor);
    });
    *out = new rw_irregular_halo{IrregularHalo(communicator, lists, elements, element_bytes)};
  });
}

int rw_irregular_halo_create_by_rows(rw_mpi_comm comm, int64_t rows, size_t ghosts,
                                     const int64_t* ghost, size_t element_bytes,
                                     rw_irregular_halo** out) {
  return c_call([&] {
    const ropewalk::Communicator communicator(comm);
    std::vector<std::int64_t> needed;
    ropewalk::collectively(communicator, [&] {
      require_argument(out, "out");
      needed = ropewalk::indices(ghost, ghosts, "ghost");
    });
    const auto lists = ropewalk::neighbors_by_rows(communicator, rows, needed);
    const std::size_t elements = static_cast<std::size_t>(rows) + ghosts;
    *out = new rw_irregular_halo{IrregularHalo(communicator, lists, elements, element_bytes)};
  });
}

int rw_irregular_halo_free(rw_irregular_halo* halo) {
  return c_call([&] { delete halo; });
}

int rw_irregular_halo_bytes(const rw_irregular_halo* halo, size_t* near_bytes, size_t* far_bytes) {
  return with_halo(halo, [&](const IrregularHalo& of) {
    if (near_bytes != nullptr) *near_bytes = of.near_bytes();
    if (far_bytes != nullptr) *far_bytes = of.far_bytes();
  });
}

int rw_irregular_halo_exchange(rw_irregular_halo* halo, void* array) {
  return with_halo(halo, [&](IrregularHalo& of) { of.exchange(array); });
}

int rw_irregular_halo_start(rw_irregular_halo* halo, void* array) {
  return with_halo(halo, [&](IrregularHalo& of) { of.start(array); });
}

int rw_irregular_halo_test(rw_irregular_halo* halo, int* done) {
  return with_halo(halo, [&](IrregularHalo& of) {
    require_argument(done, "done");
    *done = of.test() ? 1 : 0;
  });
}

int rw_irregular_halo_wait(rw_irregular_halo* halo) {
  return with_halo(halo, [&](IrregularHalo& of) { of.wait(); });
}

int rw_irregular_halo_combine(rw_irregular_halo* halo, void* array, rw_type type, rw_op op) {
  return with_halo(halo, [&](IrregularHalo& of) {
    of.combine(array, ropewalk::own_type(type, "type"), ropewalk::own_op(op, "op"));
  });
}

}  // extern "C"
