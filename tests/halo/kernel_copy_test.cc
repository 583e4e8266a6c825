// Copies of faces by the kernel: the bytes of a plain copy, and what becomes of those that the
// kernel refuses.
#include "halo/kernel_copy.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "halo/direct.hpp"
#include "ropewalk/halo.hpp"
#include "support/thread_mpi.hpp"
#include "transport/access.hpp"

namespace ropewalk::test {
namespace {

// Runs the task on two ranks, with the memory of both, where the kernel copies between processes.
void on_two_ranks(const std::function<void(int rank, channel::PeerMemory&)>& task) {
  run_ranks(2, [&](int rank) {
    std::string reason;
    const auto team = node::Team::create(mpi::comm_world(), reason);
    ASSERT_NE(team, nullptr) << reason;
    if (!team->cma()) GTEST_SKIP() << "process_vm_readv is not allowed here";
    channel::PeerMemory memory(*team, {0, 0});
    task(rank, memory);
  });
}

// Dense and strided sides, more runs than a list has, against a plain copy.
TEST(KernelCopy, EqualsAPlainCopy) {
  on_two_ranks([](int rank, channel::PeerMemory& memory) {
    const std::vector<std::size_t> extents{3, 700, 1};
    const std::vector<std::size_t> strided{9000, 12, 5};
    const std::vector<std::size_t> dense{3500, 5, 5};
    for (const auto& [from, to] :
         {std::pair(strided, dense), std::pair(dense, strided), std::pair(strided, strided)}) {
      std::vector<unsigned char> source(27000);
      for (std::size_t i = 0; i < source.size(); ++i) {
        source[i] = static_cast<unsigned char>(i * 31 + static_cast<std::size_t>(rank));
      }
      std::vector<unsigned char> expected(27000);
      std::vector<unsigned char> read(27000);
      std::vector<unsigned char> written(27000);
      const auto copy = [&](std::vector<unsigned char>& destination) {
        return kernels::StridedCopy(source.data(), destination.data(), {extents, from, to, 5});
      };
      copy(expected).run();
      using Ways = halo::KernelCopy::Way;
      EXPECT_TRUE(halo::KernelCopy(copy(read), Ways::read).run(memory, rank));
      EXPECT_TRUE(halo::KernelCopy(copy(written), Ways::write).run(memory, rank));
      EXPECT_EQ(read, expected);
      EXPECT_EQ(written, expected);
    }
    // The same in parts, in any order.
    const std::size_t bytes = std::size_t{3} * 700 * 5;
    std::vector<unsigned char> from(bytes, 7);
    std::vector<unsigned char> to(bytes, 0);
    const kernels::StridedCopy whole(from.data(), to.data(), {{}, {}, {}, bytes});
    std::vector<halo::KernelCopy> parts;
    halo::KernelCopy(whole, halo::KernelCopy::Way::read).append_parts(2048, parts);
    EXPECT_EQ(parts.size(), 6U);
    for (std::size_t i = parts.size(); i-- > 0;) EXPECT_TRUE(parts[i].run(memory, rank));
    EXPECT_EQ(to, from);
    std::vector<unsigned char> some(16);
    const kernels::StridedCopy nowhere(reinterpret_cast<void*>(8), some.data(), {{}, {}, {}, 16});
    EXPECT_FALSE(halo::KernelCopy(nowhere, halo::KernelCopy::Way::read).run(memory, rank));
  });
}

// Runs with small gaps are read as one, in parts: 200 KB of them. Nothing is written between runs.
TEST(KernelCopy, OfRunsWithSmallGapsEqualsAPlainCopy) {
  on_two_ranks([](int rank, channel::PeerMemory& memory) {
    const std::vector<std::size_t> extents{3, 80, 840};
    const std::vector<std::size_t> from{84000, 1000, 1};
    const std::vector<std::size_t> to{90000, 1120, 1};
    std::vector<unsigned char> source(252000);
    for (std::size_t i = 0; i < source.size(); ++i) {
      source[i] = static_cast<unsigned char>(i * 31 + static_cast<std::size_t>(rank));
    }
    std::vector<unsigned char> expected(270000, 0xee);
    std::vector<unsigned char> read = expected;
    std::vector<unsigned char> in_parts = expected;
    const auto copy = [&](std::vector<unsigned char>& destination) {
      return kernels::StridedCopy(source.data(), destination.data(), {extents, from, to, 1});
    };
    ASSERT_TRUE(halo::has_small_gaps(copy(read)));
    copy(expected).run();
    using Way = halo::KernelCopy::Way;
    halo::KernelCopy whole(copy(read), Way::read);
    EXPECT_TRUE(whole.run(memory, rank));
    EXPECT_EQ(read, expected);
    std::vector<halo::KernelCopy> parts;
    halo::KernelCopy(copy(in_parts), Way::read).append_parts(20000, parts);
    EXPECT_GT(parts.size(), 6U);
    for (std::size_t i = parts.size(); i-- > 0;) EXPECT_TRUE(parts[i].run(memory, rank));
    EXPECT_EQ(in_parts, expected);
  });
}

// A page between two runs that nobody may read.
TEST(KernelCopy, NeedsNoMemoryInGaps) {
  on_two_ranks([](int rank, channel::PeerMemory& memory) {
    constexpr std::size_t page = 4096, run = 4 * page, runs = 4, stride = run + page;
    void* const mapped =
        mmap(nullptr, runs * stride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    auto* const source = static_cast<unsigned char*>(mapped);
    for (std::size_t i = 0; i < runs * stride; ++i) source[i] = static_cast<unsigned char>(i % 251);
    ASSERT_EQ(mprotect(source + stride + run, page, PROT_NONE), 0);
    std::vector<unsigned char> read(runs * run), expected(runs * run);
    const auto copy = [&](std::vector<unsigned char>& destination) {
      return kernels::StridedCopy(source, destination.data(),
                                  {std::vector<std::size_t>{runs}, std::vector<std::size_t>{stride},
                                   std::vector<std::size_t>{run}, run});
    };
    ASSERT_TRUE(halo::has_small_gaps(copy(read)));
    copy(expected).run();
    EXPECT_TRUE(halo::KernelCopy(copy(read), halo::KernelCopy::Way::read).run(memory, rank));
    EXPECT_EQ(read, expected);
    munmap(mapped, runs * stride);
  });
}

TEST(KernelCopy, ReadsLargeGapsNot) {
  std::vector<unsigned char> memory(2000);
  const auto gaps = [&](std::size_t stride) {
    const std::vector<std::size_t> extents{10};
    const std::vector<std::size_t> from{stride};
    const std::vector<std::size_t> to{100};
    const kernels::StridedCopy copy(memory.data(), memory.data(), {extents, from, to, 80});
    return halo::has_small_gaps(copy);
  };
  EXPECT_FALSE(gaps(80));  // none
  EXPECT_TRUE(gaps(81));
  EXPECT_TRUE(gaps(100));
  EXPECT_FALSE(gaps(110));
}

// This is the carrier of one rank of two; its neighbour is a few flags.
struct LoneCarrier {
  EndpointSet endpoints{Communicator::world(), {.lanes = 1, .threads = false, .pin = false}};
  std::array<double, 2> row{};
  node::Team* team = nullptr;
  halo::FlagLine started;
  halo::FlagLine claim;
  halo::FlagLine copied;
  halo::FlagLine left;
  std::optional<halo::DirectCarrier> direct;

  // It has one face, which goes out in copies of which the kernel refuses one, or comes in.
  explicit LoneCarrier(bool goes_out) {
    const auto lanes = transport::Access::lanes(endpoints);
    std::string reason;
    team = lanes->team(reason);
    halo::Transfers transfers;
    transfers.flags = halo::FlagBlock(1);
    transfers.memory = std::make_shared<channel::PeerMemory>(*team, channel::PeerMemory::Worth{});
    transfers.left.push_back(&left);
    const int other = 1 - Communicator::world().rank();
    halo::FaceTransfer face{other, other, &started, &claim, &copied, 0, {}};
    void* const nowhere = reinterpret_cast<void*>(8);
    if (goes_out) {
      for (void* to : {nowhere, static_cast<void*>(row.data())}) {
        const kernels::StridedCopy copy(row.data(), to, {{}, {}, {}, 16});
        face.copies.by_kernel.emplace_back(copy, halo::KernelCopy::Way::write);
      }
    }
    (goes_out ? transfers.outgoing : transfers.incoming).push_back(std::move(face));
    direct.emplace(lanes, team, std::move(transfers));
  }
  void expect_error(const char* words) {
    direct->start();
    try {
      direct->wait();
      ADD_FAILURE() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
};

// Its receiver must neither wait for the face nor believe that it is there.
TEST(Refusal, IsToldToTheReceiver) {
  run_ranks(2, [](int) {
    LoneCarrier lone(true);
    lone.started.number = 1;
    lone.expect_error("the kernel refused a copy");
    EXPECT_EQ(lone.claim.number.load(), 1U);
    EXPECT_EQ(lone.copied.number.load(), halo::withdrawn);
    EXPECT_EQ(lone.left.number.load(), 1U);
    mpi::barrier(mpi::comm_world());
  });
}

// The neighbour had claimed the face, could not copy it, and has given up.
TEST(Refusal, OfTheNeighbourIsNotWaitedFor) {
  run_ranks(2, [](int) {
    LoneCarrier lone(false);
    lone.started.number = halo::withdrawn;
    lone.claim.number = 1;
    lone.copied.number = halo::withdrawn;
    lone.expect_error("gave up an exchange");
    mpi::barrier(mpi::comm_world());
  });
}

}  // namespace
}  // namespace ropewalk::test
