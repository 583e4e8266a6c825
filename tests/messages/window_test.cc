// Tests one-sided memory on ranks as threads: what is put is there, atomic operations lose nothing,
// arguments are checked.
#include "ropewalk/window.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"
#include "messages/expect_error.hpp"
#include "messages/random_windows.hpp"
#include "mpi/mpi.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

using test::expect_error;

void on_ranks(int ranks, std::size_t bytes, const std::function<void(Window&)>& body) {
  test::run_ranks(ranks, [&](int) {
    Window window(Communicator::world(), bytes);
    body(window);
    mpi::barrier(mpi::comm_world());
  });
}

TEST(Window, WhatIsPutIsThereAfterAFence) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, std::size_t{5 << 20}}) {
    on_ranks(3, 3 * bytes, [&](Window& window) {
      const auto rank = static_cast<std::size_t>(window.rank());
      const std::vector<unsigned char> data(bytes, static_cast<unsigned char>(rank + 1));
      for (int to = 0; to < 3; ++to) window.put(data.data(), bytes, to, rank * bytes);
      window.fence();
      std::vector<unsigned char> all(3 * bytes);
      window.get(all.data(), all.size(), (window.rank() + 1) % 3, 0);
      for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(all[i], i / bytes + 1);
        ASSERT_EQ(std::to_integer<unsigned char>(window.data()[i]), i / bytes + 1);
      }
      window.fence();
    });
  }
}

TEST(Window, ASignalComesAfterWhatWasPut) {
  on_ranks(2, 4096, [](Window& window) {
    std::vector<std::uint64_t> data(512);
    for (std::uint64_t turn = 1; turn <= 200; ++turn) {
      if (window.rank() == 0) {
        data.assign(data.size(), turn);
        window.put(data.data(), 4096, 1, 0);
        window.signal(1, 3);
        window.wait_signal(turn);
      } else {
        window.wait_signal(turn, 3);
        EXPECT_EQ(window.signals(3), turn);
        window.get(data.data(), 4096, 1, 0);
        EXPECT_EQ(data, std::vector<std::uint64_t>(512, turn));
        window.signal(0);
      }
    }
  });
}

TEST(Window, AtomicOperationsLoseNothing) {
  on_ranks(4, 4096, [](Window& window) {
    constexpr int turns = 500;
    const std::vector<double> ones(100, 1.0);
    const std::uint64_t one = 1;
    for (int turn = 0; turn < turns; ++turn) {
      window.accumulate(ones.data(), ones.size(), ElementType::float64, ReductionOp::sum, 0, 0);
      std::uint64_t before = 0;
      window.fetch_and_op(&one, &before, ElementType::uint64, ReductionOp::sum, 1, 8);
      // A counter by compare and swap alone.
      std::uint64_t seen = 0;
      window.fetch_and_op(nullptr, &seen, ElementType::uint64, ReductionOp::no_op, 2, 16);
      for (std::uint64_t was = seen + 1; was != seen;) {
        const std::uint64_t next = seen + 1;
        window.compare_and_swap(&seen, &next, &was, ElementType::uint64, 2, 16);
        if (was == seen) break;
        seen = was;
        was = seen + 1;
      }
    }
    window.fence();
    if (window.rank() == 0) {
      for (std::size_t i = 0; i < 100; ++i) {
        EXPECT_EQ(reinterpret_cast<double*>(window.data())[i], 4.0 * turns);
      }
      EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(window.data(1) + 8), 4U * turns);
      EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(window.data(2) + 16), 4U * turns);
    }
    window.fence();
  });
}

// Every pair of type and operation that there is, against a kernel on private memory.
TEST(Window, AccumulateIsWhatAReductionIs) {
  on_ranks(1, 1 << 14, [](Window& window) {
    std::mt19937 random(5);
    int pairs = 0;
    for (int type_number = 0; type_number < element_type_count; ++type_number) {
      for (int op_number = 0; op_number < reduction_op_count; ++op_number) {
        const auto type = static_cast<ElementType>(type_number);
        const auto op = static_cast<ReductionOp>(op_number);
        const auto kernel = kernels::find(type, op);
        if (kernel == nullptr || size_of(type) > 8) continue;
        constexpr std::size_t count = 77;
        const std::size_t bytes = count * size_of(type);
        std::vector<std::byte> first(bytes);
        std::vector<std::byte> second(bytes);
        // The numbers are small in all formats: the low bits of a byte pattern, 0 and 1 for
        // booleans.
        for (auto* each : {&first, &second}) {
          for (std::byte& byte : *each) byte = static_cast<std::byte>(random() & 1U);
        }
        std::vector<std::byte> expected = first;
        void* out = expected.data();
        const void* in[] = {first.data(), second.data()};
        kernel(&out, 1, in, 2, count, kernels::Stores::temporal);
        window.put(first.data(), bytes, 0, 64);
        window.accumulate(second.data(), count, type, op, 0, 64);
        EXPECT_EQ(std::memcmp(window.data() + 64, expected.data(), bytes), 0)
            << type_number << " " << op_number;
        ++pairs;
      }
    }
    EXPECT_GT(pairs, 100);
  });
}

TEST(Window, ArgumentsAreChecked) {
  on_ranks(2, 100, [](Window& window) {
    std::uint64_t value[32] = {};
    const auto argument = ErrorCode::argument;
    expect_error(argument, "rank: 2", [&] { window.put(value, 8, 2, 0); });
    expect_error(argument, "offset: 8 bytes at 93", [&] { window.put(value, 8, 1, 93); });
    expect_error(argument, "offset: 8 bytes at 184467",
                 [&] { window.get(value, 8, 1, SIZE_MAX - 3); });
    expect_error(argument, "from: null", [&] { window.put(nullptr, 8, 1, 0); });
    expect_error(argument, "offset: 4 is no multiple",
                 [&] { window.accumulate(value, 1, ElementType::uint64, ReductionOp::sum, 1, 4); });
    expect_error(argument, "type: ", [&] {
      window.accumulate(value, 1, ElementType::complex_float64, ReductionOp::sum, 1, 0);
    });
    expect_error(argument, "type: ", [&] {
      window.accumulate(value, 1, ElementType::float64, ReductionOp::band, 1, 0);
    });
    expect_error(argument, "offset: ", [&] {
      window.accumulate(value, SIZE_MAX / 4, ElementType::uint64, ReductionOp::sum, 1, 0);
    });
    expect_error(argument, "index: signal 8", [&] { window.signal(1, 8); });
    expect_error(argument, "index: signal -1", [&] { window.wait_signal(1, -1); });
  });
  test::run_ranks(2, [](int rank) {
    expect_error(ErrorCode::argument, "signals",
                 [&] { const Window window(Communicator::world(), 8, {.signals = rank + 1}); });
  });
}

// Nodes that ROPEWALK_NODES pretends.
void on_nodes(const char* ranks_of_nodes, int ranks, const std::function<void(int)>& body) {
  ::setenv("ROPEWALK_NODES", ranks_of_nodes, 1);
  test::run_ranks(ranks, body);
  ::unsetenv("ROPEWALK_NODES");
}

TEST(Window, RandomOperationsOnOneNode) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    test::run_ranks(1 + static_cast<int>(seed % 5), [&](int) {
      EXPECT_EQ(test::random_windows(Communicator::world(), seed, 20), "");
    });
  }
}

TEST(Window, RandomOperationsOverNodes) {
  for (const char* nodes : {"1", "2", "2,1", "1,3"}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      on_nodes(nodes, 4, [&](int) {
        EXPECT_EQ(test::random_windows(Communicator::world(), seed, 15), "")
            << "nodes of " << nodes << ", seed " << seed;
      });
    }
  }
}

TEST(Window, MemoryOfAnotherNodeIsNotMapped) {
  on_nodes("2", 4, [](int rank) {
    Window window(Communicator::world(), 100 + static_cast<std::size_t>(rank));
    const int far = (rank + 2) % 4;
    EXPECT_FALSE(window.is_near(far));
    EXPECT_TRUE(window.is_near(rank ^ 1));
    EXPECT_EQ(window.bytes(far), 100U + static_cast<std::size_t>(far));
    expect_error(ErrorCode::unsupported, "rank: the memory of rank " + std::to_string(far),
                 [&] { window.data(far); });
    std::uint64_t value = 0;
    expect_error(ErrorCode::argument, "offset: 8 bytes at 100",
                 [&] { window.put(&value, 8, far, 100); });
    window.fence();
    window.close();
    window.put(&value, 8, rank ^ 1, 0);
    expect_error(ErrorCode::argument, "window: closed", [&] { window.put(&value, 8, far, 0); });
    mpi::barrier(mpi::comm_world());
  });
}

TEST(Window, OverNodesItNeedsThreads) {
  ::setenv("ROPEWALK_NODES", "1", 1);
  test::RunOptions options;
  options.level = mpi::ThreadLevel::serialized;
  test::run_ranks(
      2,
      [](int) {
        expect_error(ErrorCode::unsupported, "window: over several nodes a thread",
                     [] { const Window window(Communicator::world(), 8); });
      },
      options);
  ::unsetenv("ROPEWALK_NODES");
}

// Who asks it for something learns that no answer comes, and so does who waits for all to end.
TEST(Window, AnErrorTakesARankAwayFromOtherNodes) {
  ::setenv("ROPEWALK_NODES", "1", 1);
  test::RunOptions options;
  options.check_leaks = false;  // MPI keeps the communicator
  test::run_ranks(
      3,
      [](int rank) {
        const auto use = [&] {
          Window window(Communicator::world(), 64);
          if (rank == 1) throw std::runtime_error("gone");
          std::uint64_t value = 0;
          while (rank == 0) window.get(&value, 8, 1, 0);
        };
        if (rank == 1) {
          EXPECT_THROW(use(), std::runtime_error);
        }
        if (rank == 0) expect_error(ErrorCode::peer_dead, "rank 1 has left the window", use);
        if (rank == 2) use();
      },
      options);
  ::unsetenv("ROPEWALK_NODES");
}

// Who waits for a signal, or for the ranks of its own node, learns of it as well.
TEST(Window, AnErrorOfARankEndsTheWaitsOfAll) {
  ::setenv("ROPEWALK_NODES", "2", 1);
  test::RunOptions options;
  options.check_leaks = false;  // MPI keeps the communicator
  test::run_ranks(
      4,
      [](int rank) {
        const auto use = [&] {
          Window window(Communicator::world(), 64, {.signals = 1});
          if (rank == 1) throw std::runtime_error("gone");
          rank == 2 ? window.wait_signal(1) : window.fence();
        };
        if (rank == 1) {
          EXPECT_THROW(use(), std::runtime_error);
        } else {
          expect_error(ErrorCode::peer_dead, "rank ", use);
        }
      },
      options);
  ::unsetenv("ROPEWALK_NODES");
}

// The thread of rank 1 has failed: nobody is answered there any more.
TEST(Window, AThreadThatFailsEndsTheWaitsOfAll) {
  ::setenv("ROPEWALK_NODES", "1", 1);
  std::atomic<bool> is_failing{false};
  test::RunOptions options;
  options.check_leaks = false;
  options.fail = [&](const char* function, int rank) {
    return is_failing && rank == 1 && std::string(function) == "MPI_Iprobe" ? 16 : 0;
  };
  test::run_ranks(
      2,
      [&](int rank) {
        const auto use = [&] {
          Window window(Communicator::world(), 64, {.signals = 1});
          mpi::barrier(mpi::comm_world());
          is_failing = true;
          window.wait_signal(1);
        };
        if (rank == 0) expect_error(ErrorCode::peer_dead, "rank 1 has left the window", use);
        if (rank == 1) expect_error(ErrorCode::mpi, "MPI_Iprobe", use);
      },
      options);
  ::unsetenv("ROPEWALK_NODES");
}

// Ranks end their windows when they like: others still read what they have mapped.
TEST(Window, MemoryStaysUntilAllHaveEnded) {
  test::run_ranks(3, [](int rank) {
    for (int turn = 0; turn < 20; ++turn) {
      Window window(Communicator::world(), 1 << 16);
      window.fence();
      if (rank == 2) {
        std::vector<std::byte> all(1 << 16);
        for (int from = 0; from < 3; ++from) window.get(all.data(), all.size(), from, 0);
        for (const std::byte each : all) ASSERT_EQ(each, std::byte{0});
      }
    }
    mpi::barrier(mpi::comm_world());
  });
}

}  // namespace
}  // namespace ropewalk
