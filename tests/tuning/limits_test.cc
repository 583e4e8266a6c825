// The limits of the algorithms are what the table and docs/explanation/collectives.md say.
#include "tuning/limits.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "topology/signature.hpp"

namespace ropewalk::tuning {
namespace {

constexpr std::size_t KiB = 1024;

// Lets the machine have other cores and caches while it lives.
class Processor {
 public:
  Processor(const char* cores, const char* caches)
      : facts_{{"machine.cores", cores}, {"machine.caches", caches}} {
    before_ = topology::replace_signature(&facts_);
  }
  ~Processor() { topology::replace_signature(before_); }
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;

 private:
  std::vector<topology::MachineFact> facts_;
  const std::vector<topology::MachineFact>* before_;
};

TEST(Limits, LetTheKernelCopyEarlierForTwoRanksWithSecondCachesOfTheirOwn) {
  const Processor two_cores("2, of 2 CPUs", "L1 32K for 1, L2 1024K for 1, L3 32768K for 2");
  EXPECT_EQ(limits_for(2, false).piecewise_bytes, 8 * KiB);
  EXPECT_EQ(limits_for(2, false).alone_bytes, 16 * KiB);
  EXPECT_EQ(limits_for(2, true).piecewise_bytes, 256 * KiB);
  EXPECT_EQ(limits_for(3, false).piecewise_bytes, 256 * KiB);
  EXPECT_EQ(limits_for(3, false).alone_bytes, 128 * KiB);
  EXPECT_EQ(halo_limits(2, false).kernel_bytes, 4 * KiB);
  EXPECT_EQ(halo_limits(2, false).kernel_small_pages_bytes, 4 * KiB);
  EXPECT_EQ(halo_limits(2, false).kernel_run_bytes, 2 * KiB);
  EXPECT_EQ(halo_limits(2, true).kernel_bytes, 128 * KiB);
  EXPECT_EQ(halo_limits(3, false).kernel_run_bytes, 16 * KiB);
}

TEST(Limits, TakeCachesThatAreNotKnownForCachesOfTheirOwn) {
  const Processor container("2, of 2 CPUs", "");
  EXPECT_EQ(limits_for(2, false).piecewise_bytes, 8 * KiB);
}

TEST(Limits, TakeOneOfSeveralSharedCachesForCachesOfTheirOwn) {
  const Processor two_cores_of_two_threads("2, of 4 CPUs", "L1 32K for 2, L2 1024K for 2");
  EXPECT_EQ(limits_for(2, false).piecewise_bytes, 8 * KiB);
}

TEST(Limits, OfTwoRanksThatShareASecondCache) {
  const Processor two_threads("1, of 2 CPUs", "L1 48K for 2, L2 1024K for 2, L3 32768K for 2");
  const Limits limits = limits_for(2, false);
  EXPECT_EQ(limits.one_shot_bytes, 512U);
  EXPECT_EQ(limits.gathered_bytes, 2 * KiB);
  EXPECT_EQ(limits.rooted_bytes, 4 * KiB);
  EXPECT_EQ(limits.copied_bytes, 16 * KiB);
  EXPECT_EQ(limits.piecewise_bytes, 256 * KiB);
  EXPECT_EQ(limits.alone_bytes, 256 * KiB);
  EXPECT_EQ(limits.piece_bytes, 8 * KiB);
  EXPECT_EQ(limits.two_level_bytes, 16 * KiB);
  EXPECT_EQ(limits.chunk_bytes, 64 * KiB);
  EXPECT_EQ(limits.cma_bytes, 16 * KiB);
  EXPECT_EQ(limits.attach_bytes, 16 * KiB);
  EXPECT_GE(limits.streaming_bytes, 4096 * KiB);   // of a cache of 16 MiB
  EXPECT_LE(limits.streaming_bytes, 16384 * KiB);  // of one of 64 MiB
}

TEST(Limits, FollowTheNumberOfRanks) {
  const Limits limits = limits_for(5, false);
  EXPECT_EQ(limits.gathered_bytes, 4 * KiB / 5);
  EXPECT_EQ(limits.alone_bytes, 64 * KiB);
  EXPECT_EQ(limits_for(33, false).alone_bytes, 16 * KiB);
  EXPECT_EQ(limits_for(33, false).gathered_bytes, 512U);
}

TEST(Limits, AreLargerWhereRanksShareCores) {
  EXPECT_EQ(limits_for(2, true).one_shot_bytes, 4 * KiB);
  EXPECT_EQ(limits_for(2, true).rooted_bytes, 5184U);
  EXPECT_EQ(limits_for(2, true).gathered_bytes, 4 * KiB);
  EXPECT_EQ(limits_for(64, true).one_shot_bytes, 512U);
}

}  // namespace
}  // namespace ropewalk::tuning
