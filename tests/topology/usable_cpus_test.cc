#include <sched.h>

#include "topology/fake_tree.hpp"
#include "topology/machine.hpp"

namespace ropewalk::topology {
namespace {

TEST_F(FakeTree, QuotaOfVersion2IsTheLeastOnTheWayUp) {
  put("cpu.max", "max 100000");
  put("job/cpu.max", "150000 100000");
  put("job/step/cpu.max", "400000 100000");
  EXPECT_EQ(cpu_quota(root(), "0::/job/step"), 1.5);
  EXPECT_EQ(cpu_quota(root(), "0::/job"), 1.5);
  EXPECT_FALSE(cpu_quota(root(), "0::/"));
}

TEST_F(FakeTree, QuotaOfVersion1) {
  put("cpu/cpu.cfs_quota_us", "-1");
  put("cpu/cpu.cfs_period_us", "100000");
  put("cpu/job/cpu.cfs_quota_us", "250000");
  put("cpu/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cpu_quota(root(), "5:cpuset:/x\n4:cpu,cpuacct:/job\n0::/job"), 2.5);
  EXPECT_FALSE(cpu_quota(root(), "4:cpu,cpuacct:/"));
}

TEST_F(FakeTree, NonsenseIsNoQuota) {
  put("a/cpu.max", "words");
  put("b/cpu.max", "100000 0");
  EXPECT_FALSE(cpu_quota(root(), "0::/a"));
  EXPECT_FALSE(cpu_quota(root(), "0::/b"));
  EXPECT_FALSE(cpu_quota(root(), "no colons here"));
  EXPECT_FALSE(cpu_quota(root(), ""));
}

TEST(UsableCpus, CountIsTheSmallerOfMaskAndQuota) {
  EXPECT_EQ((UsableCpus{{0, 1, 2, 3}, std::nullopt}.count()), 4);
  EXPECT_EQ((UsableCpus{{0, 1, 2, 3}, 1.5}.count()), 2);
  EXPECT_EQ((UsableCpus{{0, 1}, 8.0}.count()), 2);
  EXPECT_EQ((UsableCpus{{0, 1}, 0.1}.count()), 1);
  EXPECT_EQ((UsableCpus{{}, std::nullopt}.count()), 1);
}

TEST(UsableCpus, AreThisThreadsMask) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(static_cast<int>(usable_cpus().cpus.size()), CPU_COUNT(&set));
}

}  // namespace
}  // namespace ropewalk::topology
