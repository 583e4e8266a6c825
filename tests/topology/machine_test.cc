// Tests machines from fake sysfs trees, and what must hold on any real one.
#include "topology/machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "topology/fake_tree.hpp"

namespace ropewalk::topology {
namespace {

using Cpus = std::vector<int>;

// The machine has two packages of two cores with two siblings each, numbered as Intel does:
// siblings are 4 apart.
class TwoPackages : public FakeTree {
 protected:
  void SetUp() override {
    FakeTree::SetUp();
    put("devices/system/cpu/online", "0-7");
    for (int cpu = 0; cpu < 8; ++cpu) put_cpu(cpu);
    put("devices/system/node/online", "0-2");
    put_node(0, "0-1,4-5", 16);
    put_node(1, "2-3,6-7", 32);
    put_node(2, "", 64);  // memory without processors
  }

  void put_cpu(int cpu) {
    const int core = cpu % 4;
    const int package = core / 2;
    const std::string directory = "devices/system/cpu/cpu" + std::to_string(cpu) + "/";
    const std::string siblings = std::to_string(core) + "," + std::to_string(core + 4);
    const std::string all = package == 0 ? "0-1,4-5" : "2-3,6-7";
    put(directory + "topology/physical_package_id", std::to_string(package));
    put(directory + "topology/core_id", std::to_string(core % 2));
    put(directory + "topology/thread_siblings_list", siblings);
    put_cache(directory + "cache/index0/", "1", "Data", "48K", siblings);
    put_cache(directory + "cache/index1/", "1", "Instruction", "32K", siblings);
    put_cache(directory + "cache/index2/", "2", "Unified", "2048K", siblings);
    put_cache(directory + "cache/index3/", "3", "Unified", "36M", all);
  }
  void put_cache(const std::string& at, const char* level, const char* type, const char* size,
                 const std::string& cpus) {
    put(at + "level", level);
    put(at + "type", type);
    put(at + "size", size);
    put(at + "coherency_line_size", "64");
    put(at + "shared_cpu_list", cpus);
  }
  void put_node(int number, const std::string& cpus, int gib) {
    const std::string directory = "devices/system/node/node" + std::to_string(number) + "/";
    put(directory + "cpulist", cpus);
    put(directory + "meminfo", "Node " + std::to_string(number) +
                                   " MemTotal:       " + std::to_string(gib << 20) + " kB\n");
  }
};

TEST_F(TwoPackages, CoresAndTheirSiblings) {
  const Machine machine = read_machine(root());
  ASSERT_EQ(machine.cores.size(), 4u);
  EXPECT_EQ(machine.cores[0].cpus, (Cpus{0, 4}));
  EXPECT_EQ(machine.cores[3].cpus, (Cpus{3, 7}));
  EXPECT_EQ(machine.cores[3].package, 1);
  EXPECT_EQ(machine.core_of(6), &machine.cores[2]);
  EXPECT_EQ(machine.core_of(99), nullptr);
}

TEST_F(TwoPackages, EachCacheOnce) {
  const Machine machine = read_machine(root());
  ASSERT_EQ(machine.caches.size(), 4u + 4u + 4u + 2u);
  EXPECT_EQ(machine.caches.back().level, 3);
  EXPECT_EQ(machine.caches.back().cpus, (Cpus{2, 3, 6, 7}));
  EXPECT_EQ(machine.caches.back().line_bytes, 64u);
  EXPECT_EQ(machine.cache_bytes(1, 5), 48u << 10);
  EXPECT_EQ(machine.cache_bytes(2, 0), 2u << 20);
  EXPECT_EQ(machine.cache_bytes(4, 0), 0u);
  EXPECT_EQ(machine.last_level_cache_bytes(7), 36u << 20);
}

TEST_F(TwoPackages, NodesWithAndWithoutProcessors) {
  const Machine machine = read_machine(root());
  ASSERT_EQ(machine.nodes.size(), 3u);
  EXPECT_EQ(machine.nodes[1].bytes, std::size_t{32} << 30);
  EXPECT_TRUE(machine.nodes[2].cpus.empty());
  ASSERT_NE(machine.node_of(6), nullptr);
  EXPECT_EQ(machine.node_of(6)->number, 1);
}

TEST_F(TwoPackages, OfflineProcessorsAreLeftOut) {
  put("devices/system/cpu/online", "0-5");
  const Machine machine = read_machine(root());
  EXPECT_EQ(machine.cpus.size(), 6u);
  ASSERT_EQ(machine.cores.size(), 4u);
  EXPECT_EQ(machine.cores[3].cpus, Cpus{3});
  EXPECT_EQ(machine.nodes[1].cpus, (Cpus{2, 3}));
}

TEST_F(FakeTree, AnEmptyTreeStillGivesAMachine) {
  const Machine machine = read_machine(root());
  EXPECT_FALSE(machine.cpus.empty());
  EXPECT_EQ(machine.cores.size(), machine.cpus.size());
  EXPECT_TRUE(machine.caches.empty());
  ASSERT_EQ(machine.nodes.size(), 1u);
  EXPECT_EQ(machine.nodes[0].cpus, machine.cpus);
}

TEST_F(FakeTree, UnknownCoreNumbersDoNotMergeCores) {
  put("devices/system/cpu/online", "0-1");
  for (const char* cpu : {"0", "1"}) {
    put(std::string("devices/system/cpu/cpu") + cpu + "/topology/core_id", "-1");
  }
  EXPECT_EQ(read_machine(root()).cores.size(), 2u);
}

TEST(ThisMachine, HasEveryOnlineProcessorInOneCore) {
  const Machine machine = read_machine();
  EXPECT_EQ(static_cast<long>(machine.cpus.size()), sysconf(_SC_NPROCESSORS_ONLN));
  std::multiset<int> seen;
  for (const Core& core : machine.cores) seen.insert(core.cpus.begin(), core.cpus.end());
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), machine.cpus.begin(), machine.cpus.end()));
  for (const int cpu : machine.cpus) EXPECT_NE(machine.core_of(cpu), nullptr);
}

}  // namespace
}  // namespace ropewalk::topology
