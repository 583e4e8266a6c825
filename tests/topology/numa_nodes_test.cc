// Tests NUMA nodes of made-up sysfs trees: the same machines as python/tests/test_numa.py, which
// must be judged alike.
#include "topology/numa_nodes.hpp"

#include <gtest/gtest.h>

#include "topology/fake_tree.hpp"

namespace ropewalk::topology {
namespace {

constexpr std::size_t gib = std::size_t{1} << 30;

struct Speed {
  int bandwidth = 0;  // MB/s
  int latency = 0;    // ns
};

class Nodes : public FakeTree {
 protected:
  void put_node(int number, const std::string& cpus, Speed speed = {}) {
    const std::string folder = "devices/system/node/node" + std::to_string(number) + "/";
    const std::string start = "Node " + std::to_string(number);
    put(folder + "cpulist", cpus);
    put(folder + "meminfo", start + " MemTotal:  " + std::to_string(64 << 20) + " kB\n" + start +
                                " MemFree:  " + std::to_string(32 << 20) + " kB");
    const std::string speeds = folder + "access0/initiators/";
    if (speed.bandwidth > 0) put(speeds + "read_bandwidth", std::to_string(speed.bandwidth));
    if (speed.latency > 0) put(speeds + "read_latency", std::to_string(speed.latency));
  }
  void put_tier(int tier, const std::string& nodes) {
    put("devices/virtual/memory_tiering/memory_tier" + std::to_string(tier) + "/nodelist", nodes);
  }
  std::optional<MemoryKind> kind(std::size_t node) const {
    const auto all = read_numa_nodes(root());
    return kind_of(all.at(node), all);
  }
};

TEST_F(Nodes, AreReadWhole) {
  put("devices/system/node/online", "0,2");
  put_node(0, "0-3", {100000, 100});
  put_node(2, "");
  put("devices/system/node/node0/memory_side_cache/index1/size", "1048576");
  put("devices/system/node/node0/memory_side_cache/index2/size", "4096");
  put("devices/virtual/memory_tiering/uevent", "");
  put_tier(4, "0");
  const auto all = read_numa_nodes(root());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].cpus, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(all[0].bytes, 64 * gib);
  EXPECT_EQ(all[0].free_bytes, 32 * gib);
  EXPECT_EQ(all[0].read_mb_per_s, 100000u);
  EXPECT_EQ(all[0].read_latency_ns, 100u);
  EXPECT_EQ(all[0].memory_side_cache_bytes, 1048576u + 4096u);
  EXPECT_EQ(all[0].tier, 4u);
  EXPECT_EQ(all[1].number, 2);
  EXPECT_EQ(all[1].tier, 0u);
}

TEST_F(Nodes, WithoutCoresAreJudgedByTheirSpeed) {
  put("devices/system/node/online", "0-3");
  put_node(0, "0-7", {100000, 100});
  put_node(1, "", {400000, 130});
  put_node(2, "", {20000, 250});
  put_node(3, "", {0, 250});
  EXPECT_EQ(kind(0), MemoryKind::ddr);
  EXPECT_EQ(kind(1), MemoryKind::hbm);
  EXPECT_EQ(kind(2), MemoryKind::cxl);
  EXPECT_EQ(kind(3), MemoryKind::cxl);
}

TEST_F(Nodes, AreJudgedByTiersWhereTheFirmwareSaysNothing) {
  put("devices/system/node/online", "0-3");
  put_node(0, "0-7");
  for (int node = 1; node < 4; ++node) put_node(node, "");
  EXPECT_EQ(kind(1), std::nullopt);
  put_tier(4, "0,3");
  put_tier(3, "1");
  put_tier(22, "2");
  EXPECT_EQ(kind(1), MemoryKind::hbm);
  EXPECT_EQ(kind(2), MemoryKind::cxl);
  EXPECT_EQ(kind(3), std::nullopt);
}

TEST_F(Nodes, OfAnEmptyTreeAreNone) { EXPECT_TRUE(read_numa_nodes(root()).empty()); }

TEST_F(Nodes, OfThisMachineHaveMemory) {
  std::size_t bytes = 0;
  const auto all = numa_nodes();
  for (const NumaNode& node : all) bytes += node.bytes;
  EXPECT_TRUE(all.empty() || bytes > 0);
}

}  // namespace
}  // namespace ropewalk::topology
