// Tests private buffers that are attached, as by XPMEM, on ranks as threads. The provider here maps
// the same memory a second time, so that a rank that goes to an address which was not attached, or
// no longer is, finds nothing there.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory_resource>
#include <mutex>
#include <set>

#include "channel/attachments.hpp"
#include "channel/xpmem.hpp"
#include "collectives/cases.hpp"
#include "os/file.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

// Private memory of tests lies in a memfd (as far as it comes from the default memory resource),
// and attaching maps a part of it anew. Other memory, which a peer might as well attach, is shown
// as it is.
class SecondMapping : public channel::Provider {
 public:
  SecondMapping() {
    EXPECT_EQ(ftruncate(file_.get(), bytes), 0);
    base_ = static_cast<std::byte*>(map(0, bytes));
  }
  ~SecondMapping() override { munmap(base_, bytes); }

  channel::Segment own_segment(std::string&) override { return 1; }
  bool open(channel::Segment) override { return true; }
  void close(channel::Segment) noexcept override {}
  std::byte* attach(channel::Segment, std::uint64_t address, std::size_t length) override {
    const auto start = reinterpret_cast<std::uintptr_t>(base_);
    if (address < start || address >= start + bytes) return reinterpret_cast<std::byte*>(address);
    if (refuses) return nullptr;
    auto* local = static_cast<std::byte*>(map(address - start, length));
    const std::lock_guard lock(mutex_);
    maps_.insert(local);
    return local;
  }
  void detach(std::byte* local, std::size_t length) noexcept override {
    const std::lock_guard lock(mutex_);
    if (maps_.erase(local) == 1) munmap(local, length);
  }

  std::size_t live() {
    const std::lock_guard lock(mutex_);
    return maps_.size();
  }
  std::byte* base() const { return base_; }
  static constexpr std::size_t bytes = std::size_t{1} << 30;  // touched where it is used only

  static thread_local bool refuses;  // for the rank that is this thread

 private:
  void* map(std::uint64_t offset, std::size_t length) const {
    void* address = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                         file_.get(), static_cast<off_t>(offset));
    EXPECT_NE(address, MAP_FAILED);
    return address;
  }

  os::Descriptor file_{memfd_create("ropewalk-test", MFD_CLOEXEC)};
  std::byte* base_;
  std::mutex mutex_;
  std::set<std::byte*> maps_;
};
thread_local bool SecondMapping::refuses = false;

// Private memory of tests that can be attached, during its life.
class AttachableMemory {
 public:
  AttachableMemory()
      : memory_(provider_.base(), SecondMapping::bytes, std::pmr::null_memory_resource()),
        pool_({16, std::size_t{4} << 20}, &memory_),
        before_(std::pmr::set_default_resource(&pool_)) {}
  ~AttachableMemory() { std::pmr::set_default_resource(before_); }
  AttachableMemory(const AttachableMemory&) = delete;
  AttachableMemory& operator=(const AttachableMemory&) = delete;

  SecondMapping& provider() { return provider_; }

 private:
  SecondMapping provider_;
  std::pmr::monotonic_buffer_resource memory_;
  std::pmr::synchronized_pool_resource pool_;
  std::pmr::memory_resource* before_;
};

// The registration cache of one rank, for communicators made during its life.
class RankCache {
 public:
  explicit RankCache(channel::Provider& provider,
                     std::size_t capacity = channel::RegistrationCache::default_capacity)
      : cache_(provider, capacity), before_(channel::replace_process_cache(&cache_)) {}
  ~RankCache() { channel::replace_process_cache(before_); }
  RankCache(const RankCache&) = delete;
  RankCache& operator=(const RankCache&) = delete;

  channel::CacheCounts counts() const { return cache_.counts(); }

 private:
  channel::RegistrationCache cache_;
  channel::RegistrationCache* before_;
};

// Sets a variable for the length of a test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

class AttachedCollectives : public testing::TestWithParam<int> {};

TEST_P(AttachedCollectives, GiveWhatLoopsGive) {
  const int ranks = GetParam();
  AttachableMemory memory;
  run_ranks(ranks, [&](int rank) {
    const RankCache cache(memory.provider(), 4);
    Collectives communicator(Communicator::world());
    ASSERT_TRUE(communicator.attaches()) << communicator.attach_reason();
    std::mt19937_64 random(2000 + ranks);
    for (int trial = 0; trial < 150; ++trial) {
      Case drawn = draw(random);
      if (trial % 2 == 0) drawn.send_shared = drawn.receive_shared = 0;
      const std::string difference = run(communicator, drawn);
      ASSERT_EQ(difference, "") << "rank " << rank << ", trial " << trial << ": "
                                << text(drawn, communicator);
    }
    EXPECT_GT(cache.counts().hits, 0U);
    EXPECT_GT(cache.counts().misses, 0U);
    EXPECT_GT(cache.counts().evictions, 0U);
  });
  EXPECT_EQ(memory.provider().live(), 0U);  // all communicators are gone
}

INSTANTIATE_TEST_SUITE_P(Ranks, AttachedCollectives, testing::Values(2, 3, 5, 8),
                         testing::PrintToStringParamName());

TEST(AttachedCollectives, PrivateBuffersTakeTheMappedPath) {
  AttachableMemory memory;
  run_ranks(3, [&](int rank) {
    const RankCache cache(memory.provider());
    Collectives communicator(Communicator::world());
    std::mt19937_64 random(1);
    Case drawn = draw(random);
    set_type(drawn, ElementType::float32);
    drawn.op = Operation::sum;
    drawn.exactly = 12000;
    drawn.common_root = 0;
    drawn.in_place = drawn.nonblocking = false;
    drawn.send_shared = drawn.receive_shared = 0;
    for (int kind = 1; kind < collective_count; ++kind) {
      drawn.collective = static_cast<Collective>(kind);
      drawn.seed = static_cast<std::uint64_t>(kind);
      const channel::CacheCounts before = cache.counts();
      ASSERT_EQ(run(communicator, drawn), "") << text(drawn, communicator);
      EXPECT_EQ(communicator.last_path(), Path::mapped) << text(drawn, communicator);
      const channel::CacheCounts after = cache.counts();
      // The root of a gather or scatter leaves it to the others.
      if (rank != drawn.common_root) {
        EXPECT_GT(after.hits + after.misses, before.hits + before.misses)
            << text(drawn, communicator);
      }
    }
    // Small ones are copied, rather than attached.
    drawn.collective = Collective::allreduce;
    drawn.exactly = 4000;
    ASSERT_EQ(run(communicator, drawn), "");
    EXPECT_EQ(communicator.last_path(), Path::staged);
  });
}

TEST(AttachedCollectives, TheSameBuffersAreAttachedOnce) {
  AttachableMemory memory;
  run_ranks(2, [&](int) {
    const RankCache cache(memory.provider());
    Collectives communicator(Communicator::world());
    std::pmr::vector<float> send(50000, 1.0F);
    std::pmr::vector<float> receive(50000);
    for (int call = 0; call < 10; ++call) {
      communicator.allreduce(send.data(), receive.data(), send.size(), ElementType::float32,
                             ReductionOp::sum);
      ASSERT_EQ(receive.back(), 2.0F);
    }
    // Two words were tried at first; then two buffers of the other rank were attached.
    EXPECT_LE(communicator.registrations().misses, 4U);
    EXPECT_GE(communicator.registrations().hits, 18U);
  });
}

// Four ranks on two nodes, where each attaches the buffers of the other one on its node.
TEST(AttachedCollectives, RegistrationsAreCountedOverNodes) {
  AttachableMemory memory;
  const Environment nodes("ROPEWALK_NODES", "2");
  const Environment all_sizes("ROPEWALK_MOVEMENTS", "nodes");
  run_ranks(4, [&](int) {
    const RankCache cache(memory.provider());
    Collectives communicator(Communicator::world());
    ASSERT_EQ(communicator.nodes(), 2) << communicator.reason();
    const std::uint64_t before = communicator.registrations().misses;
    EXPECT_EQ(before, cache.counts().misses);
    std::pmr::vector<float> data(500000, 1.0F);
    communicator.allreduce(in_place, data.data(), data.size(), ElementType::float32,
                           ReductionOp::sum);
    ASSERT_EQ(data.back(), 4.0F);
    const RegistrationCounts counts = communicator.registrations();
    EXPECT_GT(counts.misses, before);
    EXPECT_GT(counts.entries, 0U);
    EXPECT_EQ(counts.misses, cache.counts().misses);
    EXPECT_EQ(counts.hits, cache.counts().hits);
    communicator.barrier();
  });
}

TEST(AttachedCollectives, WhatACallUsedMayBeDetachedAfterIt) {
  AttachableMemory memory;
  run_ranks(2, [&](int rank) {
    const RankCache cache(memory.provider(), 2);
    Collectives communicator(Communicator::world());
    constexpr std::size_t count = 32768;  // 128 KiB: buffers of calls share no page
    std::pmr::vector<int> many(40 * count, rank);
    for (std::size_t call = 0; call < 40; ++call) {
      int* data = many.data() + call * count;
      switch (call / 10) {
        case 0:
          communicator.allreduce(in_place, data, count / 2, ElementType::int32, ReductionOp::sum);
          break;
        case 1:
          communicator.broadcast(data, count * 2, 1);
          break;
        case 2:
          communicator.gather(data, data + count / 2, count, 1);
          break;
        default:
          communicator.allgather(data, data + count / 2, count);
      }
      EXPECT_LE(cache.counts().entries, 3U) << call;
    }
    communicator.barrier();
    EXPECT_GT(cache.counts().evictions, 5U);
  });
}

// What the cache cannot attach is no deadlock and no wrong result: all ranks learn of it.
TEST(AttachedCollectives, ARefusalIsAnErrorOnEveryRankThatDependsOnIt) {
  AttachableMemory memory;
  run_ranks(3, [&](int rank) {
    const RankCache cache(memory.provider());
    Collectives communicator(Communicator::world());
    std::pmr::vector<int> send(30000, rank);
    std::pmr::vector<int> receive(90000);
    const std::size_t bytes = send.size() * sizeof(int);
    const auto outcome = [&](auto&& call) {
      SecondMapping::refuses = rank == 1;
      ErrorCode code{};
      try {
        call();
      } catch (const Error& error) {
        code = error.code();
      }
      SecondMapping::refuses = false;
      return code;
    };
    EXPECT_EQ(outcome([&] {
                communicator.allreduce(send.data(), receive.data(), send.size(), ElementType::int32,
                                       ReductionOp::sum);
              }),
              ErrorCode::system);
    EXPECT_EQ(outcome([&] { communicator.broadcast(send.data(), bytes, 0); }), ErrorCode::system);
    // Single blocks can be moved by the kernel as well.
    std::fill(send.begin(), send.end(), rank);
    if (outcome([&] { communicator.gather(send.data(), receive.data(), bytes, 0); }) ==
        ErrorCode{}) {
      EXPECT_TRUE(rank > 0 || receive[59999] == 1);
    }
    if (outcome([&] { communicator.allgather(send.data(), receive.data(), bytes); }) ==
        ErrorCode{}) {
      EXPECT_EQ(receive[80000], 2);
    }
    // The communicator is as good as before.
    std::fill(send.begin(), send.end(), rank);
    communicator.allreduce(send.data(), receive.data(), send.size(), ElementType::int32,
                           ReductionOp::sum);
    EXPECT_EQ(receive[29999], 3);
  });
}

TEST(AttachedCollectives, WithoutXpmemTheReasonIsSaidAndAllWorks) {
  const auto missing = channel::make_xpmem("/nonexistent/xpmem");
  run_ranks(2, [&](int) {
    const RankCache cache(*missing);
    Collectives communicator(Communicator::world());
    EXPECT_FALSE(communicator.attaches());
    EXPECT_NE(communicator.attach_reason().find("/nonexistent/xpmem"), std::string::npos);
    EXPECT_EQ(communicator.registrations().misses, 0U);
    std::vector<float> data(30000, 1.0F);
    communicator.allreduce(in_place, data.data(), data.size(), ElementType::float32,
                           ReductionOp::sum);
    EXPECT_NE(communicator.last_path(), Path::mapped);
    EXPECT_EQ(data.back(), 2.0F);
  });
}

TEST(AttachedCollectives, TheEnvironmentTurnsThemOff) {
  AttachableMemory memory;
  const Environment off("ROPEWALK_XPMEM", "off");
  run_ranks(2, [&](int) {
    const RankCache cache(memory.provider());
    const Collectives communicator(Communicator::world());
    EXPECT_FALSE(communicator.attaches());
    EXPECT_NE(communicator.attach_reason().find("ROPEWALK_XPMEM"), std::string::npos);
  });
}

TEST(AttachedCollectives, AMalformedEnvironmentIsAnErrorThatNamesTheVariable) {
  for (const auto& [name, value] :
       {std::pair{"ROPEWALK_XPMEM", "perhaps"}, std::pair{"ROPEWALK_REGISTRATIONS", "0"},
        std::pair{"ROPEWALK_REGISTRATIONS", "12x"}}) {
    const Environment malformed(name, value);
    run_ranks(2, [&, variable = name](int) {
      try {
        const Collectives communicator(Communicator::world());
        ADD_FAILURE() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::argument);
        EXPECT_NE(std::string(error.what()).find(variable), std::string::npos) << error.what();
      }
    });
  }
}

}  // namespace
}  // namespace ropewalk::test
