// Adapters of made-up machines, and the cores near them, as in python/tests/test_fabric.py.
#include "topology/adapters.hpp"

#include <gtest/gtest.h>

#include "topology/fake_tree.hpp"

namespace ropewalk::topology {
namespace {

using Numbers = std::vector<int>;

class Adapters : public FakeTree {
 protected:
  Adapters() = default;
  void put_nodes() {
    put("devices/system/node/online", "0-1");
    put("devices/system/node/node0/cpulist", "0-3,8-11");
    put("devices/system/node/node1/cpulist", "4-7,12-15");
  }
  void put_adapter(const std::string& name, const std::string& node, const std::string& state) {
    put("class/infiniband/" + name + "/device/numa_node", node);
    put("class/infiniband/" + name + "/ports/1/state", state);
  }
  void put_interface(const std::string& name, const std::string& node, const std::string& state,
                     const std::string& speed) {
    const std::string folder = "class/net/" + name + "/";
    put(folder + "device/numa_node", node);
    put(folder + "operstate", state);
    put(folder + "speed", speed);
  }
};

TEST_F(Adapters, OfVerbsComeFirst) {
  put_nodes();
  put_adapter("mlx5_0", "1", "4: ACTIVE");
  put_adapter("mlx5_1", "0", "1: DOWN");
  put_interface("eth0", "0", "up", "100000");
  EXPECT_EQ(adapter_nodes(root()), Numbers{1});
  EXPECT_EQ(cpus_near_adapters(root()), (Numbers{4, 5, 6, 7, 12, 13, 14, 15}));
}

TEST_F(Adapters, OfSlingshotHaveNoPorts) {
  put("class/cxi/cxi0/device/numa_node", "0");
  put("class/cxi/cxi1/device/numa_node", "1");
  EXPECT_EQ(adapter_nodes(root()), (Numbers{0, 1}));
}

TEST_F(Adapters, AreElseTheFastestInterfacesThatAreUp) {
  put_nodes();
  put_interface("eth0", "0", "up", "1000");
  put_interface("eth1", "1", "up", "25000");
  put_interface("eth2", "0", "down", "100000");
  put("class/net/br0/speed", "100000");
  put("class/net/br0/operstate", "up");
  EXPECT_EQ(adapter_nodes(root()), Numbers{1});
}

TEST_F(Adapters, MayBeNowhere) {
  EXPECT_TRUE(adapter_nodes(root()).empty());
  EXPECT_TRUE(cpus_near_adapters(root()).empty());
  put_nodes();
  put_adapter("mlx5_0", "-1", "4: ACTIVE");
  put_interface("eth0", "1", "up", "-1");
  EXPECT_TRUE(adapter_nodes(root()).empty());
  EXPECT_TRUE(cpus_near_adapters(root()).empty());
}

}  // namespace
}  // namespace ropewalk::topology
