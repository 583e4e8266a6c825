// The C functions of this room do what those of C++ do.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "ropewalk/ropewalk.h"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

TEST(ScheduleInC, SharesOutALoop) {
  rw_stealing* loop = nullptr;
  ASSERT_EQ(rw_stealing_create(10, 2, 1, 4, &loop), RW_SUCCESS);
  std::size_t begin = 1;
  std::size_t end = 0;
  std::size_t done = 0;
  while (rw_stealing_next(loop, 0, &begin, &end) == RW_SUCCESS && begin != end) done += end - begin;
  EXPECT_EQ(done, 10U);
  EXPECT_EQ(rw_stealing_reset(loop), RW_SUCCESS);
  EXPECT_EQ(rw_stealing_next(loop, 2, &begin, &end), RW_ERROR_ARGUMENT);
  EXPECT_NE(std::strstr(rw_last_error(), "worker: 2"), nullptr);
  EXPECT_EQ(rw_stealing_free(loop), RW_SUCCESS);
  EXPECT_EQ(rw_stealing_create(10, 0, 0, 0, &loop), RW_ERROR_ARGUMENT);
  EXPECT_EQ(rw_stealing_next(nullptr, 0, &begin, &end), RW_ERROR_ARGUMENT);
}

struct Step {
  rw_team* team = nullptr;
  std::vector<double> send = std::vector<double>(2, 0);
  std::vector<double> receive = std::vector<double>(2, 0);
  std::atomic<int> interior{0};
  std::atomic<int> right{0};
};

void faces(void* user, int worker) {
  auto* step = static_cast<Step*>(user);
  if (worker == 0) step->send.assign(2, 7);
}
void interior(void* user, size_t begin, size_t end) {
  static_cast<Step*>(user)->interior += static_cast<int>(end - begin);
}
void boundary(void* user, int) {
  auto* step = static_cast<Step*>(user);
  rw_team_barrier(step->team);
  step->right += step->receive[0] == 7 && step->receive[1] == 7 ? 1 : 0;
}

TEST(ScheduleInC, OverlapsAnExchange) {
  test::run_ranks(2, [](int) {
    rw_mpi_comm world = 0;
    ASSERT_EQ(rw_comm_world(&world), RW_SUCCESS);
    const int extents[] = {2};
    const int periodic[] = {1};
    rw_grid* grid = nullptr;
    rw_endpoints* endpoints = nullptr;
    ASSERT_EQ(rw_grid_create(world, 1, extents, periodic, &grid), RW_SUCCESS);
    ASSERT_EQ(rw_endpoints_create(world, 1, 0, &endpoints), RW_SUCCESS);
    Step step;
    const void* send[] = {&step.send[0], &step.send[1]};
    void* receive[] = {&step.receive[0], &step.receive[1]};
    const std::size_t bytes[] = {8, 8};
    rw_halo* halo = nullptr;
    rw_halo_options options = RW_HALO_OPTIONS_INIT;
    options.strategy = RW_STRATEGY_CONCURRENT;
    ASSERT_EQ(rw_halo_create_faces(grid, endpoints, send, receive, bytes, &options, &halo),
              RW_SUCCESS);
    rw_stealing* loop = nullptr;
    ASSERT_EQ(rw_team_create(world, 2, 0, &step.team), RW_SUCCESS);
    ASSERT_EQ(rw_stealing_create(20, 2, 1, 1, &loop), RW_SUCCESS);
    int size = 0;
    EXPECT_EQ(rw_team_size(step.team, &size), RW_SUCCESS);
    EXPECT_EQ(size, 2);
    EXPECT_EQ(rw_overlap(step.team, loop, faces, halo, interior, boundary, &step), RW_SUCCESS);
    EXPECT_EQ(step.interior.load(), 20);
    EXPECT_EQ(step.right.load(), 2);
    EXPECT_EQ(rw_overlap(step.team, loop, faces, nullptr, interior, boundary, &step),
              RW_ERROR_ARGUMENT);
    EXPECT_EQ(rw_stealing_free(loop), RW_SUCCESS);
    EXPECT_EQ(rw_team_free(step.team), RW_SUCCESS);
    EXPECT_EQ(rw_halo_free(halo), RW_SUCCESS);
    EXPECT_EQ(rw_endpoints_free(endpoints), RW_SUCCESS);
    EXPECT_EQ(rw_grid_free(grid), RW_SUCCESS);
  });
}

TEST(ScheduleInC, RunsTasks) {
  rw_team* team = nullptr;
  test::run_ranks(1, [&](int) {
    rw_mpi_comm world = 0;
    ASSERT_EQ(rw_comm_world(&world), RW_SUCCESS);
    ASSERT_EQ(rw_team_create(world, 3, 1, &team), RW_SUCCESS);
    std::atomic<int> sum{0};
    const auto add = [](void* user, int worker) {
      *static_cast<std::atomic<int>*>(user) += worker + 1;
    };
    EXPECT_EQ(rw_team_run(team, add, &sum), RW_SUCCESS);
    EXPECT_EQ(sum.load(), 6);
    EXPECT_EQ(rw_team_run(team, nullptr, &sum), RW_ERROR_ARGUMENT);
    EXPECT_EQ(rw_team_free(team), RW_SUCCESS);
  });
}

}  // namespace
}  // namespace ropewalk
