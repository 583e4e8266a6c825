#include <gtest/gtest.h>

#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/ropewalk.h"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

bool last_error_has(const char* word) { return std::strstr(rw_last_error(), word) != nullptr; }

rw_halo_options with_strategy(int strategy) {
  rw_halo_options out = RW_HALO_OPTIONS_INIT;
  out.strategy = strategy;
  return out;
}

// Exchanges of four ranks in a ring, with faces in memory of the halo.
void expect_buffers(const rw_grid* grid, rw_endpoints* endpoints, int rank, int strategy) {
  const std::size_t bytes[] = {sizeof(int), sizeof(int)};
  const rw_halo_options options = with_strategy(strategy);
  rw_halo* halo = nullptr;
  ASSERT_EQ(rw_halo_create_buffers(grid, endpoints, bytes, &options, &halo), RW_SUCCESS)
      << rw_last_error();
  for (int round = 0; round < 3; ++round) {
    *static_cast<int*>(rw_halo_send_buffer(halo, 0)) = 100 + rank + 1000 * round;
    *static_cast<int*>(rw_halo_send_buffer(halo, 1)) = 200 + rank + 1000 * round;
    ASSERT_EQ(rw_halo_exchange(halo), RW_SUCCESS) << rw_last_error();
    EXPECT_EQ(*static_cast<const int*>(rw_halo_receive_buffer(halo, 0)),
              200 + (rank + 1) % 4 + 1000 * round);
    EXPECT_EQ(*static_cast<const int*>(rw_halo_receive_buffer(halo, 1)),
              100 + (rank + 3) % 4 + 1000 * round);
  }
  EXPECT_EQ(rw_halo_free(halo), RW_SUCCESS);
}

TEST(HaloC, ExchangesFieldsAndFaces) {
  run_ranks(4, [](int rank) {
    rw_mpi_comm world = 0;
    ASSERT_EQ(rw_comm_world(&world), RW_SUCCESS);
    int found = -1;
    ASSERT_EQ(rw_comm_rank(world, &found), RW_SUCCESS);
    EXPECT_EQ(found, rank);
    ASSERT_EQ(rw_comm_size(world, &found), RW_SUCCESS);
    EXPECT_EQ(found, 4);

    const int extents[] = {4};
    const int periodic[] = {1};
    rw_grid* grid = nullptr;
    ASSERT_EQ(rw_grid_create(world, 1, extents, periodic, &grid), RW_SUCCESS) << rw_last_error();
    ASSERT_EQ(rw_grid_coordinates(grid, &found), RW_SUCCESS);
    EXPECT_EQ(found, rank);
    ASSERT_EQ(rw_grid_neighbour(grid, 0, -1, &found), RW_SUCCESS);
    EXPECT_EQ(found, (rank + 3) % 4);
    EXPECT_EQ(rw_grid_neighbour(grid, 3, -1, &found), RW_ERROR_ARGUMENT);

    rw_endpoints* endpoints = nullptr;
    ASSERT_EQ(rw_endpoints_create(world, 1, 0, &endpoints), RW_SUCCESS) << rw_last_error();

    const int low = rank * 10;
    int array[] = {-1, low, low + 1, -1};
    const std::size_t interior[] = {2};
    const std::size_t ghost[] = {1};
    const rw_field field{sizeof(rw_field), array, sizeof(int), interior, ghost};
    rw_halo* halo = nullptr;
    rw_halo_options options = with_strategy(RW_STRATEGY_CONCURRENT);
    ASSERT_EQ(rw_halo_create_fields(grid, endpoints, 1, &field, &options, &halo), RW_SUCCESS)
        << rw_last_error();
    ASSERT_EQ(rw_halo_exchange(halo), RW_SUCCESS) << rw_last_error();
    EXPECT_EQ(array[0], (rank + 3) % 4 * 10 + 1);
    EXPECT_EQ(array[3], (rank + 1) % 4 * 10);
    EXPECT_EQ(rw_halo_free(halo), RW_SUCCESS);

    const int up = 100 + rank;
    const int down = 200 + rank;
    int from_up = -1;
    int from_down = -1;
    const void* send[] = {&up, &down};
    void* receive[] = {&from_up, &from_down};
    const std::size_t bytes[] = {sizeof(int), sizeof(int)};
    options = with_strategy(RW_STRATEGY_SEQUENTIAL);
    ASSERT_EQ(rw_halo_create_faces(grid, endpoints, send, receive, bytes, &options, &halo),
              RW_SUCCESS)
        << rw_last_error();
    ASSERT_EQ(rw_halo_start(halo), RW_SUCCESS);
    int done = 0;
    ASSERT_EQ(rw_halo_test(halo, &done), RW_SUCCESS);
    ASSERT_EQ(rw_halo_wait(halo), RW_SUCCESS);
    ASSERT_EQ(rw_halo_test(halo, &done), RW_SUCCESS);
    EXPECT_EQ(done, 1);
    EXPECT_EQ(from_up, 200 + (rank + 1) % 4);
    EXPECT_EQ(from_down, 100 + (rank + 3) % 4);
    EXPECT_EQ(rw_halo_free(halo), RW_SUCCESS);

    expect_buffers(grid, endpoints, rank, RW_STRATEGY_PUT);
    expect_buffers(grid, endpoints, rank, RW_STRATEGY_CONCURRENT);
    EXPECT_EQ(rw_endpoints_free(endpoints), RW_SUCCESS);
    EXPECT_EQ(rw_grid_free(grid), RW_SUCCESS);
  });
}

TEST(HaloC, NullOnOneRankIsAnErrorOnAll) {
  run_ranks(3, [](int rank) {
    const bool wrong = rank == 1;
    rw_mpi_comm world = 0;
    ASSERT_EQ(rw_comm_world(&world), RW_SUCCESS);
    const int extents[] = {3};
    const int periodic[] = {0};
    rw_grid* grid = nullptr;
    EXPECT_EQ(rw_grid_create(world, 1, wrong ? nullptr : extents, periodic, &grid),
              RW_ERROR_ARGUMENT);
    EXPECT_TRUE(last_error_has("extents: NULL")) << rw_last_error();
    EXPECT_EQ(rw_grid_create(world, wrong ? 0 : 1, extents, periodic, &grid), RW_ERROR_ARGUMENT);
    EXPECT_TRUE(last_error_has("dimensions: 0")) << rw_last_error();
    EXPECT_EQ(rw_grid_create(world, 1, extents, periodic, wrong ? nullptr : &grid),
              RW_ERROR_ARGUMENT);
    EXPECT_EQ(grid, nullptr);
    ASSERT_EQ(rw_grid_create(world, 1, extents, periodic, &grid), RW_SUCCESS);
    rw_endpoints* endpoints = nullptr;
    ASSERT_EQ(rw_endpoints_create(world, 1, 0, &endpoints), RW_SUCCESS);

    int array[4] = {};
    const std::size_t interior[] = {2};
    const std::size_t ghost[] = {1};
    const rw_field field{sizeof(rw_field), array, sizeof(int), wrong ? nullptr : interior, ghost};
    rw_halo* halo = nullptr;
    EXPECT_EQ(rw_halo_create_fields(grid, endpoints, 1, &field, nullptr, &halo), RW_ERROR_ARGUMENT);
    EXPECT_TRUE(last_error_has("field[0].interior: NULL")) << rw_last_error();
    EXPECT_EQ(rw_halo_create_fields(grid, endpoints, wrong ? 0 : 1, &field, nullptr, &halo),
              RW_ERROR_ARGUMENT);
    EXPECT_EQ(rw_halo_create_fields(grid, wrong ? nullptr : endpoints, 1, &field, nullptr, &halo),
              RW_ERROR_ARGUMENT);
    EXPECT_TRUE(last_error_has("endpoints: NULL")) << rw_last_error();
    EXPECT_EQ(rw_halo_create_faces(grid, endpoints, nullptr, nullptr, nullptr, nullptr, &halo),
              RW_ERROR_ARGUMENT);
    EXPECT_TRUE(last_error_has("send: NULL")) << rw_last_error();
    EXPECT_EQ(halo, nullptr);
    EXPECT_EQ(rw_endpoints_free(endpoints), RW_SUCCESS);
    EXPECT_EQ(rw_grid_free(grid), RW_SUCCESS);
  });
}

// These structs look as programs pass them that were compiled with a header of the future: larger,
// and in an array of larger ones.
struct LaterField {
  rw_field known;
  std::size_t later;
};
struct LaterOptions {
  rw_halo_options known;
  int later;
};

TEST(HaloC, StructsOfTheCallerMayBeLarger) {
  run_ranks(2, [](int rank) {
    rw_mpi_comm world = 0;
    ASSERT_EQ(rw_comm_world(&world), RW_SUCCESS);
    const int extents[] = {2};
    const int periodic[] = {1};
    rw_grid* grid = nullptr;
    rw_endpoints* endpoints = nullptr;
    ASSERT_EQ(rw_grid_create(world, 1, extents, periodic, &grid), RW_SUCCESS);
    ASSERT_EQ(rw_endpoints_create(world, 1, 0, &endpoints), RW_SUCCESS);
    int arrays[2][3] = {{-1, rank, -1}, {-1, 10 + rank, -1}};
    const std::size_t interior[] = {1};
    const std::size_t ghost[] = {1};
    LaterField fields[2] = {};
    for (int i = 0; i < 2; ++i) {
      fields[i].known = {sizeof(LaterField), arrays[i], sizeof(int), interior, ghost};
    }
    LaterOptions options{with_strategy(RW_STRATEGY_SEQUENTIAL), 0};
    options.known.size = sizeof(LaterOptions);
    const auto create = [&](rw_halo** out) {
      return rw_halo_create_fields(grid, endpoints, 2, &fields[0].known, &options.known, out);
    };
    rw_halo* halo = nullptr;
    ASSERT_EQ(create(&halo), RW_SUCCESS) << rw_last_error();
    ASSERT_EQ(rw_halo_exchange(halo), RW_SUCCESS) << rw_last_error();
    EXPECT_EQ(arrays[0][0], 1 - rank);
    EXPECT_EQ(arrays[1][2], 10 + 1 - rank);
    EXPECT_EQ(rw_halo_free(halo), RW_SUCCESS);

    options.later = rank;  // what this library does not know it cannot do
    EXPECT_EQ(create(&halo), RW_ERROR_UNSUPPORTED);
    EXPECT_TRUE(last_error_has("options")) << rw_last_error();
    options.later = 0;
    fields[1].known.size = sizeof(rw_field);
    EXPECT_EQ(create(&halo), RW_ERROR_ARGUMENT);
    EXPECT_TRUE(last_error_has("field[1].size")) << rw_last_error();
    options.known.size = 0;
    EXPECT_EQ(rw_halo_create_fields(grid, endpoints, 1, &fields[0].known, &options.known, &halo),
              RW_ERROR_ARGUMENT);
    EXPECT_TRUE(last_error_has("options.size: 0")) << rw_last_error();
    EXPECT_EQ(rw_endpoints_free(endpoints), RW_SUCCESS);
    EXPECT_EQ(rw_grid_free(grid), RW_SUCCESS);
  });
}

// Of a ring of four ranks that were dealt to two nodes, all faces leave their node; in compact
// blocks, one of the two does.
TEST(HaloC, CountsWhatLeavesTheNode) {
  setenv("ROPEWALK_NODES", "round:2", 1);
  run_ranks(4, [](int) {
    rw_mpi_comm world = 0;
    ASSERT_EQ(rw_comm_world(&world), RW_SUCCESS);
    rw_endpoints* endpoints = nullptr;
    ASSERT_EQ(rw_endpoints_create(world, 1, 0, &endpoints), RW_SUCCESS) << rw_last_error();
    const int extents[] = {4};
    const int periodic[] = {1};
    for (const auto create : {&rw_grid_create, &rw_grid_create_by_node}) {
      rw_grid* grid = nullptr;
      ASSERT_EQ(create(world, 1, extents, periodic, &grid), RW_SUCCESS) << rw_last_error();
      const std::size_t bytes[] = {8, 8};
      const rw_halo_options options = with_strategy(RW_STRATEGY_PUT);
      rw_halo* halo = nullptr;
      ASSERT_EQ(rw_halo_create_buffers(grid, endpoints, bytes, &options, &halo), RW_SUCCESS)
          << rw_last_error();
      ASSERT_EQ(rw_halo_exchange(halo), RW_SUCCESS) << rw_last_error();
      std::size_t sent = 0;
      std::size_t to_other_nodes = 0;
      ASSERT_EQ(rw_halo_bytes(halo, &sent, &to_other_nodes), RW_SUCCESS) << rw_last_error();
      EXPECT_EQ(sent, 16U);
      EXPECT_EQ(to_other_nodes, create == &rw_grid_create ? 16U : 8U);
      EXPECT_EQ(rw_halo_bytes(halo, nullptr, &to_other_nodes), RW_ERROR_ARGUMENT);
      EXPECT_EQ(rw_halo_free(halo), RW_SUCCESS);
      EXPECT_EQ(rw_grid_free(grid), RW_SUCCESS);
    }
    EXPECT_EQ(rw_endpoints_free(endpoints), RW_SUCCESS);
  });
  unsetenv("ROPEWALK_NODES");
}

// Each rank passes on what has come from the one before, part by part.
TEST(HaloC, WorkersShareAnExchange) {
  run_ranks(2, [](int rank) {
    rw_mpi_comm world = 0;
    ASSERT_EQ(rw_comm_world(&world), RW_SUCCESS);
    const int extents[] = {2};
    const int periodic[] = {1};
    rw_grid* grid = nullptr;
    ASSERT_EQ(rw_grid_create(world, 1, extents, periodic, &grid), RW_SUCCESS);
    rw_endpoints* endpoints = nullptr;
    ASSERT_EQ(rw_endpoints_create(world, 1, 0, &endpoints), RW_SUCCESS);
    const std::size_t bytes[] = {40000, 40000};
    rw_halo_options options = with_strategy(RW_STRATEGY_DIRECT);
    options.workers = 2;
    rw_halo* halo = nullptr;
    ASSERT_EQ(rw_halo_create_buffers(grid, endpoints, bytes, &options, &halo), RW_SUCCESS)
        << rw_last_error();
    for (int direction = 0; direction < 2; ++direction) {
      std::memset(rw_halo_send_buffer(halo, direction), 10 * rank + direction + 1, 40000);
    }
    std::thread other([halo] {
      EXPECT_EQ(rw_halo_start_worker(halo, 1), RW_SUCCESS);
      EXPECT_EQ(rw_halo_wait_worker(halo, 1), RW_SUCCESS);
    });
    EXPECT_EQ(rw_halo_start_worker(halo, 0), RW_SUCCESS) << rw_last_error();
    EXPECT_EQ(rw_halo_wait_worker(halo, 0), RW_SUCCESS) << rw_last_error();
    other.join();
    const auto* from = static_cast<const char*>(rw_halo_receive_buffer(halo, 0));
    EXPECT_EQ(from[0], 10 * (1 - rank) + 2);
    EXPECT_EQ(from[39999], 10 * (1 - rank) + 2);
    EXPECT_EQ(rw_halo_start_worker(halo, 2), RW_ERROR_ARGUMENT);
    EXPECT_TRUE(last_error_has("worker: 2"));
    EXPECT_EQ(rw_halo_free(halo), RW_SUCCESS);
    EXPECT_EQ(rw_endpoints_free(endpoints), RW_SUCCESS);
    EXPECT_EQ(rw_grid_free(grid), RW_SUCCESS);
  });
}

void expect_parts(rw_halo* halo, int rank) {
  auto* out = static_cast<std::uint8_t*>(rw_halo_send_buffer(halo, 0));
  ASSERT_EQ(rw_halo_start(halo), RW_SUCCESS) << rw_last_error();
  const auto* in = static_cast<const std::uint8_t*>(rw_halo_receive_buffer(halo, 1));
  for (int part = 0; part < 3; ++part) {  // of four bytes: 1, 1 and 2
    int there = rank == 0 ? 1 : 0;
    while (there == 0) {
      ASSERT_EQ(rw_halo_arrived(halo, 1, part, &there), RW_SUCCESS) << rw_last_error();
      std::this_thread::yield();
    }
    for (int at = part; at < (part == 2 ? 4 : part + 1); ++at) {
      out[at] = static_cast<std::uint8_t>(rank == 0 ? 7 * at : in[at] + 1);
    }
    ASSERT_EQ(rw_halo_ready(halo, 0, part), RW_SUCCESS) << rw_last_error();
    ASSERT_EQ(rw_halo_ready(halo, 1, part), RW_SUCCESS) << rw_last_error();
  }
  EXPECT_EQ(rw_halo_ready(halo, 0, 1), RW_ERROR_ARGUMENT);
  EXPECT_TRUE(last_error_has("handed over before")) << rw_last_error();
  ASSERT_EQ(rw_halo_wait(halo), RW_SUCCESS) << rw_last_error();
  for (int at = 0; at < 4; ++at) EXPECT_EQ(in[at], 7 * at + (rank + 2) % 3);
}

TEST(HaloC, FacesInParts) {
  run_ranks(3, [](int rank) {
    rw_mpi_comm world = 0;
    ASSERT_EQ(rw_comm_world(&world), RW_SUCCESS);
    const int extents[] = {3};
    const int periodic[] = {1};
    rw_grid* grid = nullptr;
    rw_endpoints* endpoints = nullptr;
    ASSERT_EQ(rw_grid_create(world, 1, extents, periodic, &grid), RW_SUCCESS);
    ASSERT_EQ(rw_endpoints_create(world, 1, 0, &endpoints), RW_SUCCESS);
    const std::size_t bytes[] = {4, 4};
    rw_halo_options options = RW_HALO_OPTIONS_INIT;
    options.parts = 3;
    rw_halo* halo = nullptr;
    ASSERT_EQ(rw_halo_create_buffers(grid, endpoints, bytes, &options, &halo), RW_SUCCESS)
        << rw_last_error();
    for (int round = 0; round < 3; ++round) expect_parts(halo, rank);
    EXPECT_EQ(rw_halo_arrived(halo, 0, 0, nullptr), RW_ERROR_ARGUMENT);
    EXPECT_EQ(rw_halo_free(halo), RW_SUCCESS);
    EXPECT_EQ(rw_endpoints_free(endpoints), RW_SUCCESS);
    EXPECT_EQ(rw_grid_free(grid), RW_SUCCESS);
  });
}

TEST(HaloC, NullHandles) {
  int value = 0;
  EXPECT_EQ(rw_halo_ready(nullptr, 0, 0), RW_ERROR_ARGUMENT);
  EXPECT_EQ(rw_halo_arrived(nullptr, 0, 0, &value), RW_ERROR_ARGUMENT);
  EXPECT_EQ(rw_halo_start(nullptr), RW_ERROR_ARGUMENT);
  EXPECT_EQ(rw_halo_create_buffers(nullptr, nullptr, nullptr, nullptr, nullptr), RW_ERROR_ARGUMENT);
  EXPECT_EQ(rw_halo_send_buffer(nullptr, 0), nullptr);
  EXPECT_EQ(rw_halo_receive_buffer(nullptr, 0), nullptr);
  EXPECT_EQ(rw_halo_wait(nullptr), RW_ERROR_ARGUMENT);
  EXPECT_EQ(rw_halo_test(nullptr, &value), RW_ERROR_ARGUMENT);
  EXPECT_EQ(rw_halo_exchange(nullptr), RW_ERROR_ARGUMENT);
  EXPECT_EQ(rw_grid_coordinates(nullptr, &value), RW_ERROR_ARGUMENT);
  EXPECT_EQ(rw_grid_neighbour(nullptr, 0, 1, &value), RW_ERROR_ARGUMENT);
  EXPECT_EQ(rw_halo_create_faces(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
            RW_ERROR_ARGUMENT);
  EXPECT_TRUE(last_error_has("grid: NULL"));
  EXPECT_EQ(rw_halo_free(nullptr), RW_SUCCESS);
  EXPECT_EQ(rw_grid_free(nullptr), RW_SUCCESS);
}

}  // namespace
}  // namespace ropewalk::test
