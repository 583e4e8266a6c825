// Calls of the C interface before MPI starts and after it has ended return the error that the
// header promises: MPI itself would end the program.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>

#include "ropewalk/irregular_halo.h"
#include "ropewalk/ropewalk.h"
#include "ropewalk/window.h"

namespace {

bool right = true;

void expect(const char* what, int code, int expected, const char* word = "") {
  const bool fits = code == expected && (*word == '\0' || std::strstr(rw_last_error(), word));
  if (fits) return;
  std::printf("%s: code %d (%s), expected %d and \"%s\"\n", what, code, rw_last_error(), expected,
              word);
  right = false;
}

void create_all(rw_mpi_comm world, const char* word) {
  constexpr int code = RW_ERROR_MPI;
  const int extent = 1;
  const int periodic = 1;
  int number = 0;
  rw_comm* comm = nullptr;
  rw_channel* channel = nullptr;
  rw_endpoints* endpoints = nullptr;
  rw_plan* plan = nullptr;
  rw_grid* grid = nullptr;
  rw_team* team = nullptr;
  rw_window* window = nullptr;
  expect("comm", rw_comm_create(world, &comm), code, word);
  expect("channel", rw_channel_create(world, nullptr, &channel), code, word);
  expect("endpoints", rw_endpoints_create(world, 1, 0, &endpoints), code, word);
  expect("plan", rw_plan_create(world, 0, nullptr, nullptr, &plan), code, word);
  expect("grid", rw_grid_create(world, 1, &extent, &periodic, &grid), code, word);
  expect("team", rw_team_create(world, 1, 0, &team), code, word);
  expect("window", rw_window_create(world, 64, nullptr, &window), code, word);
  expect("rank", rw_comm_rank(world, &number), code, word);
  expect("size", rw_comm_size(world, &number), code, word);
}

void run() {
  rw_mpi_comm world = 0;
  expect("world", rw_comm_world(&world), RW_SUCCESS);
  expect("finalize before init", rw_finalize(), RW_ERROR_MPI, "not initialised");
  create_all(world, "not initialised");
  expect("init", rw_init(), RW_SUCCESS);
  expect("init again", rw_init(), RW_SUCCESS);
  rw_comm* comm = nullptr;
  expect("comm", rw_comm_create(world, &comm), RW_SUCCESS);
  expect("barrier", rw_barrier(comm), RW_SUCCESS);
  expect("free", rw_comm_free(comm), RW_SUCCESS);
  expect("finalize", rw_finalize(), RW_SUCCESS);
  expect("finalize again", rw_finalize(), RW_SUCCESS);
  create_all(world, "already finalised");
  expect("init after finalize", rw_init(), RW_ERROR_MPI, "already finalised");
}

}  // namespace

int main() {
  run();
  return right ? 0 : 1;
}
