// Tests buffers of other ranks on ranks as threads, reached in every way: a rank reads what the
// owner has written, and the owner finds what another rank has written.
#include "channel/peer_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/memory.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::channel {
namespace {

constexpr PeerMemory::Worth worth{.attached = 1024, .by_kernel = 1024};
constexpr std::size_t bytes = 10'000;

// Shows other threads' memory as it is; where it refuses, nothing can be attached.
class SameMemory : public Provider {
 public:
  Segment own_segment(std::string&) override { return 1; }
  bool open(Segment) override { return true; }
  void close(Segment) noexcept override {}
  std::byte* attach(Segment, std::uint64_t address, std::size_t) override {
    return refuses ? nullptr : reinterpret_cast<std::byte*>(address);
  }
  void detach(std::byte*, std::size_t) noexcept override {}

  static thread_local bool refuses;  // for the rank that is this thread
};
thread_local bool SameMemory::refuses = false;

class RankCache {
 public:
  RankCache() : cache_(provider_, 16), before_(replace_process_cache(&cache_)) {}
  ~RankCache() { replace_process_cache(before_); }
  RankCache(const RankCache&) = delete;
  RankCache& operator=(const RankCache&) = delete;

 private:
  SameMemory provider_;
  RegistrationCache cache_;
  RegistrationCache* before_;
};

std::vector<Reference> gathered(Reference own, int ranks) {
  std::vector<Reference> all(static_cast<std::size_t>(ranks));
  mpi::all_gather(&own, all.data(), sizeof own, mpi::comm_world());
  return all;
}

unsigned char letter(int rank, std::size_t index) {
  return static_cast<unsigned char>(17 * (rank + 1) + static_cast<int>(index % 251));
}

// Each rank reads the middle of every buffer, then writes a byte of its own into it.
void read_and_write(PeerMemory& memory, int rank, int ranks, unsigned char* own,
                    Reference reference) {
  constexpr std::size_t offset = 4097;
  constexpr std::size_t length = 3000;
  for (std::size_t index = 0; index < bytes; ++index) own[index] = letter(rank, index);
  const std::vector<Reference> all = gathered(reference, ranks);
  for (int peer = 0; peer < ranks; ++peer) {
    std::vector<unsigned char> copy(length);
    const Reference from = all[static_cast<std::size_t>(peer)] + offset;
    ASSERT_TRUE(memory.read(copy.data(), peer, from, length, kernels::Stores::temporal));
    for (std::size_t index = 0; index < length; ++index) {
      ASSERT_EQ(copy[index], letter(peer, offset + index)) << peer << " at " << index;
    }
  }
  mpi::barrier(mpi::comm_world());
  const auto mine = static_cast<unsigned char>(200 + rank);
  for (int peer = 0; peer < ranks; ++peer) {
    const Reference to =
        all[static_cast<std::size_t>(peer)] + (offset + static_cast<std::size_t>(rank));
    EXPECT_TRUE(memory.write(peer, to, &mine, 1, kernels::Stores::temporal));
  }
  memory.end_call();
  mpi::barrier(mpi::comm_world());
  for (int peer = 0; peer < ranks; ++peer) {
    EXPECT_EQ(own[offset + static_cast<std::size_t>(peer)], 200 + peer);
  }
  EXPECT_EQ(own[offset + static_cast<std::size_t>(ranks)],
            letter(rank, offset + static_cast<std::size_t>(ranks)));
}

TEST(PeerMemory, ReferencesTellTheirWays) {
  const Reference mapped = Reference::mapped(4096) + 1;
  EXPECT_TRUE(mapped.is_mapped() && mapped.is_visible());
  EXPECT_EQ(mapped.place(), 4097U);
  const Reference attached = Reference::attached(std::uint64_t{1} << 56) + 1;
  EXPECT_TRUE(attached.is_visible() && !attached.is_mapped() && !attached.is_by_kernel());
  EXPECT_EQ(attached.place(), (std::uint64_t{1} << 56) + 1);
  const Reference by_kernel = Reference::by_kernel(77);
  EXPECT_TRUE(by_kernel.is_by_kernel() && !by_kernel.is_visible() && !by_kernel.is_none());
  EXPECT_TRUE(Reference().is_none() && (Reference::none(1) + 5).is_none());
  EXPECT_NE(Reference::none(), Reference::none(1));
  EXPECT_NE(Reference::mapped(77), by_kernel);
}

TEST(PeerMemory, OfTheArenaIsMapped) {
  test::run_ranks(3, [](int rank) {
    std::string reason;
    const auto team = node::Team::create(mpi::comm_world(), reason);
    ASSERT_NE(team, nullptr) << reason;
    PeerMemory memory(*team, worth);
    Buffer<unsigned char> own(bytes);
    const Reference reference = memory.visible(own.data(), bytes);
    EXPECT_TRUE(reference.is_mapped());
    EXPECT_EQ(reference, PeerMemory::in_arena(own.data()));
    EXPECT_EQ(reference, memory.reachable(own.data(), bytes));
    read_and_write(memory, rank, 3, own.data(), reference);
  });
}

TEST(PeerMemory, PrivateIsCopiedByTheKernel) {
  test::run_ranks(3, [](int rank) {
    std::string reason;
    const auto team = node::Team::create(mpi::comm_world(), reason);
    ASSERT_NE(team, nullptr) << reason;
    if (!team->cma()) GTEST_SKIP() << "process_vm_readv is not allowed here";
    PeerMemory memory(*team, worth);
    std::vector<unsigned char> own(bytes);
    EXPECT_TRUE(memory.visible(own.data(), bytes).is_none());
    const Reference reference = memory.reachable(own.data(), bytes);
    EXPECT_TRUE(reference.is_by_kernel());
    EXPECT_TRUE(memory.reachable(own.data(), worth.by_kernel - 1).is_none());  // not worth it
    read_and_write(memory, rank, 3, own.data(), reference);
  });
}

TEST(PeerMemory, PrivateIsAttachedAndElseCopied) {
  test::run_ranks(3, [](int rank) {
    const RankCache cache;
    std::string reason;
    const auto team = node::Team::create(mpi::comm_world(), reason);
    ASSERT_NE(team, nullptr) << reason;
    PeerMemory memory(*team, worth);
    memory.attach_with(Attachments::create(*team, reason));
    ASSERT_TRUE(memory.attaches()) << reason;
    std::vector<unsigned char> own(bytes);
    const Reference reference = memory.visible(own.data(), bytes);
    EXPECT_TRUE(reference.is_visible() && !reference.is_mapped());
    EXPECT_TRUE(memory.visible(own.data(), worth.attached - 1).is_none());
    read_and_write(memory, rank, 3, own.data(), reference);

    SameMemory::refuses = true;  // for memory that is not attached yet, as this
    std::vector<unsigned char> other(bytes);
    const Reference refused = memory.visible(other.data(), bytes);
    const int peer = (rank + 1) % 3;
    const std::vector<Reference> all = gathered(refused, 3);
    const Reference theirs = all[static_cast<std::size_t>(peer)];
    EXPECT_EQ(memory.resolve(peer, theirs, bytes), nullptr);
    if (team->cma()) read_and_write(memory, rank, 3, other.data(), refused);
    mpi::barrier(mpi::comm_world());
  });
}

// Lists whose runs end at other places on either side, and one with a run that is not there.
TEST(PeerMemory, ListsOfRunsAreCopiedByTheKernel) {
  test::run_ranks(2, [](int rank) {
    std::string reason;
    const auto team = node::Team::create(mpi::comm_world(), reason);
    ASSERT_NE(team, nullptr) << reason;
    if (!team->cma()) GTEST_SKIP() << "process_vm_readv is not allowed here";
    PeerMemory memory(*team, worth);
    std::vector<unsigned char> there(100);
    std::iota(there.begin(), there.end(), static_cast<unsigned char>(rank));
    std::vector<unsigned char> here(50);
    const auto two = [](unsigned char* first, std::size_t a, unsigned char* second, std::size_t b) {
      return std::vector<iovec>{{first, a}, {second, b}};
    };
    std::vector<iovec> local = two(here.data(), 10, here.data() + 20, 20);
    std::vector<iovec> remote = two(there.data() + 50, 25, there.data(), 5);
    ASSERT_TRUE(memory.read(local, rank, remote));
    EXPECT_EQ(std::memcmp(here.data(), &there[50], 10), 0);
    EXPECT_EQ(std::memcmp(&here[20], &there[60], 15), 0);
    EXPECT_EQ(std::memcmp(&here[35], there.data(), 5), 0);
    EXPECT_EQ(here[10] + here[19] + here[40], 0);

    local = two(here.data() + 20, 20, here.data(), 10);
    remote = two(there.data(), 1, there.data() + 2, 29);
    ASSERT_TRUE(memory.write(local, rank, remote));
    EXPECT_EQ(there[0], here[20]);
    EXPECT_EQ(std::memcmp(&there[2], &here[21], 19), 0);
    EXPECT_EQ(std::memcmp(&there[21], here.data(), 10), 0);

    local = two(here.data(), 5, here.data() + 5, 5);
    remote = two(there.data(), 5, reinterpret_cast<unsigned char*>(8), 5);
    EXPECT_FALSE(memory.read(local, rank, remote));
    EXPECT_TRUE(memory.read(std::span<iovec>(), rank, std::span<iovec>()));
  });
}

TEST(PeerMemory, WhatCannotBeReachedIsFalse) {
  test::run_ranks(2, [](int rank) {
    std::string reason;
    const auto team = node::Team::create(mpi::comm_world(), reason);
    ASSERT_NE(team, nullptr) << reason;
    PeerMemory memory(*team, worth);
    char here[16] = {};
    const auto plain = kernels::Stores::temporal;
    const int peer = 1 - rank;
    for (const Reference nowhere : {Reference::none(), Reference::by_kernel(8)}) {
      EXPECT_FALSE(memory.read(here, peer, nowhere, sizeof here, plain));
      EXPECT_FALSE(memory.write(peer, nowhere, here, sizeof here, plain));
      EXPECT_TRUE(memory.read(here, peer, nowhere, 0, plain));
      EXPECT_TRUE(memory.write(peer, nowhere, here, 0, plain));
    }
  });
}

}  // namespace
}  // namespace ropewalk::channel
