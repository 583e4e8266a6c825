// Tests on which NUMA nodes memory lies: on made-up nodes, with system calls that are answered as
// such a machine would, and on the nodes that this one has.
#include "memory/numa_placement.hpp"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "fake_numa.hpp"
#include "memory/options.hpp"
#include "os/file.hpp"
#include "os/mapping.hpp"
#include "os/numa.hpp"
#include "ropewalk/ropewalk.h"

namespace ropewalk::memory {
namespace {

using Nodes = std::vector<int>;
constexpr std::size_t bytes = 3 * os::mib;

// Two nodes with cores, one of fast memory beside each, and one of slow memory.
std::vector<topology::NumaNode> five_nodes() {
  std::vector<topology::NumaNode> nodes(5);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].number = static_cast<int>(i);
    nodes[i].bytes = 16 * os::gib;
    nodes[i].read_mb_per_s = i < 2 ? 100000 : i < 4 ? 400000 : 30000;
  }
  nodes[0].cpus = {0};
  nodes[1].cpus = {1};
  return nodes;
}

MemoryOptions on_node(int node) {
  MemoryOptions options;
  options.pages = PagePolicy::never;
  options.node = node;
  return options;
}
MemoryOptions of_kind(MemoryKind kind) {
  MemoryOptions options;
  options.pages = PagePolicy::never;
  options.kind = kind;
  return options;
}

template <class Call>
std::string error_of(ErrorCode code, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(NumaPlacement, TellsTheKernelBeforeAnyPageIsThere) {
  for (const PageSource source :
       {PageSource::shmem_small, PageSource::shmem_huge, PageSource::thp}) {
    test::FakeNuma fake(five_nodes());
    MemoryOptions options = on_node(4);
    options.source = source;
    try {
      const PageBlock block(bytes, options);
      ASSERT_EQ(fake.bindings.size(), 1u) << name(source);
      EXPECT_EQ(fake.bindings[0].mode, MPOL_PREFERRED);
      EXPECT_EQ(fake.bindings[0].nodes, Nodes{4});
      EXPECT_TRUE(fake.bindings[0].untouched) << name(source);
      EXPECT_EQ(fake.bindings[0].end - fake.bindings[0].begin, block.mapped_bytes());
      EXPECT_EQ(inspect(block.data(), bytes).node_bytes,
                (std::vector<std::size_t>{0, 0, 0, 0, bytes}));
    } catch (const Error& error) {
      EXPECT_EQ(source, PageSource::shmem_huge) << error.what();  // no huge pages on this machine
    }
  }
}

TEST(NumaPlacement, AKindIsAllItsNodes) {
  test::FakeNuma fake(five_nodes());
  const PageBlock fast(bytes, of_kind(MemoryKind::hbm));
  const PageBlock slow(bytes, of_kind(MemoryKind::cxl));
  const PageBlock ordinary(bytes, of_kind(MemoryKind::ddr));
  ASSERT_EQ(fake.bindings.size(), 3u);
  EXPECT_EQ(fake.bindings[0].nodes, (Nodes{2, 3}));
  EXPECT_EQ(fake.bindings[0].mode, 5) << "MPOL_PREFERRED_MANY";
  EXPECT_EQ(fake.bindings[1].nodes, Nodes{4});
  EXPECT_EQ(fake.bindings[2].nodes, (Nodes{0, 1}));
}

TEST(NumaPlacement, NoWishNoCall) {
  test::FakeNuma fake(five_nodes());
  const PageBlock block(bytes);
  EXPECT_TRUE(fake.bindings.empty());
}

TEST(NumaPlacement, ErrorsNameTheArgumentAndWhatThereIs) {
  auto nodes = five_nodes();
  nodes.pop_back();
  nodes[3].bytes = 0;
  const test::FakeNuma fake(nodes);
  const auto refusal = [](const MemoryOptions& options) {
    return error_of(ErrorCode::argument, [&] { PageBlock(bytes, options); });
  };
  for (const int node : {-1, 5, 5000}) {
    const std::string text = refusal(on_node(node));
    EXPECT_EQ(text.find("node: found " + std::to_string(node)), 0u) << text;
    EXPECT_TRUE(has(text, "0 (ddr, 16384 MiB)")) << text;
    EXPECT_TRUE(has(text, "2 (hbm, 16384 MiB)")) << text;
  }
  EXPECT_TRUE(has(refusal(on_node(3)), "3 without memory"));
  EXPECT_EQ(refusal(of_kind(MemoryKind::cxl)).find("kind: found cxl"), 0u);
  MemoryOptions both = on_node(2);
  both.kind = MemoryKind::hbm;
  EXPECT_TRUE(has(refusal(both), "2 and a kind, hbm"));
  EXPECT_TRUE(has(error_of(ErrorCode::argument, [] { memory_kind("mcdram"); }), "ddr, hbm, cxl"));
}

TEST(NumaPlacement, ANodeThatTheCpusetForbidsIsRefused) {
  test::FakeNuma fake(five_nodes());
  fake.allowed = {0, 2};
  const std::string text = error_of(ErrorCode::memory, [] { PageBlock(bytes, on_node(1)); });
  EXPECT_EQ(text.find("node: "), 0u) << text;
  EXPECT_TRUE(has(text, "expected one of the nodes 0, 2")) << text;
  const PageBlock block(bytes, of_kind(MemoryKind::hbm));
  EXPECT_EQ(fake.bindings.at(0).nodes, Nodes{2}) << "what is left of the kind";
}

TEST(NumaPlacement, ARefusedCallIsExplained) {
  test::FakeNuma fake(five_nodes());
  fake.error = EPERM;
  EXPECT_TRUE(has(error_of(ErrorCode::memory, [] { PageBlock(bytes, on_node(1)); }), "SYS_NICE"));
  fake.error = EINVAL;
  EXPECT_TRUE(has(error_of(ErrorCode::memory, [] { PageBlock(bytes, of_kind(MemoryKind::hbm)); }),
                  "Linux 5.15"));
}

TEST(NumaPlacement, PagesThatLieElsewhereAreMoved) {
  test::FakeNuma fake(five_nodes());
  fake.full_goes_to = 0;
  const PageBlock block(bytes, on_node(2));
  ASSERT_EQ(fake.bindings.size(), 2u);
  EXPECT_FALSE(fake.bindings[0].move);
  EXPECT_TRUE(fake.bindings[1].move);
}

TEST(NumaPlacement, PagesThatStayElsewhereAreAnError) {
  test::FakeNuma fake(five_nodes());
  fake.full_goes_to = 0;
  fake.movable = false;
  std::string text = error_of(ErrorCode::memory, [] { PageBlock(bytes, on_node(2)); });
  EXPECT_TRUE(has(text, std::to_string(bytes) + " of " + std::to_string(bytes))) << text;
  EXPECT_TRUE(has(text, "do not lie on NUMA node 2; node 2 has")) << text;
  fake.tells_places = false;
  text = error_of(ErrorCode::memory, [] { PageBlock(bytes, on_node(2)); });
  EXPECT_TRUE(has(text, "move_pages")) << text;
}

TEST(NumaPlacement, LibcGetsItsMemoryBackUnbound) {
  test::FakeNuma fake(five_nodes());
  MemoryOptions options = on_node(2);
  options.source = PageSource::memalign;
  { const PageBlock block(bytes, options); }
  ASSERT_EQ(fake.bindings.size(), 2u);
  EXPECT_EQ(fake.bindings[0].nodes, Nodes{2});
  EXPECT_EQ(fake.bindings[1].mode, MPOL_DEFAULT);
  EXPECT_EQ(fake.bindings[1].begin, fake.bindings[0].begin);
}

TEST(NumaPlacement, AnArenaBindsAllThatItGrowsTo) {
  test::FakeNuma fake(five_nodes());
  MemoryOptions options = on_node(4);
  options.reserve_bytes = 64 * os::mib;
  Arena arena(options);
  void* block = arena.allocate(20 * os::mib);
  EXPECT_EQ(inspect(block, 20 * os::mib).node_bytes.at(4), 20 * os::mib);
  std::size_t bound = 0;
  for (const auto& one : fake.bindings) {
    bound += one.end - one.begin;
    EXPECT_TRUE(one.untouched);
  }
  EXPECT_EQ(bound, arena.committed_bytes());
  fake.full_goes_to = 1;
  fake.movable = false;
  const std::string text = error_of(ErrorCode::memory, [&] { arena.allocate(20 * os::mib); });
  EXPECT_TRUE(has(text, "do not lie on NUMA node 4")) << text;
}

class MemorySetting : public testing::Test {
 protected:
  void TearDown() override { unsetenv("ROPEWALK_MEMORY"); }
};

TEST_F(MemorySetting, IsANodeOrAKindThatThisMachineHas) {
  const test::FakeNuma fake(five_nodes());
  setenv("ROPEWALK_MEMORY", "3", 1);
  EXPECT_EQ(environment_options().node, 3);
  setenv("ROPEWALK_MEMORY", "cxl", 1);
  EXPECT_EQ(environment_options().kind, MemoryKind::cxl);
  EXPECT_EQ(environment_options().node, std::nullopt);
  setenv("ROPEWALK_MEMORY", "auto", 1);
  EXPECT_EQ(environment_options().kind, std::nullopt);
  for (const char* wrong : {"7", "mcdram", "-1"}) {
    setenv("ROPEWALK_MEMORY", wrong, 1);
    const std::string text = error_of(ErrorCode::argument, [] { environment_options(); });
    EXPECT_EQ(text.find("ROPEWALK_MEMORY: found "), 0u) << text;
  }
}

TEST(NumaPlacement, OfTheCInterface) {
  test::FakeNuma fake(five_nodes());
  rw_memory_options options = RW_MEMORY_OPTIONS_INIT;
  options.pages = RW_PAGES_NEVER;
  options.kind = RW_MEMORY_CXL;
  rw_page_block* block = nullptr;
  ASSERT_EQ(rw_page_block_create(bytes, &options, &block), RW_SUCCESS) << rw_last_error();
  EXPECT_EQ(fake.bindings.at(0).nodes, Nodes{4});
  void* data = nullptr;
  ASSERT_EQ(rw_page_block_data(block, &data), RW_SUCCESS);
  rw_inspection found;
  ASSERT_EQ(rw_inspect(data, bytes, &found), RW_SUCCESS);
  EXPECT_EQ(found.resident_bytes, bytes);
  EXPECT_EQ(rw_page_block_free(block), RW_SUCCESS);
  options.node = 1;
  EXPECT_EQ(rw_page_block_create(bytes, &options, &block), RW_ERROR_ARGUMENT) << "both";
  options = RW_MEMORY_OPTIONS_INIT;
  options.kind = 9;
  EXPECT_EQ(rw_page_block_create(bytes, &options, &block), RW_ERROR_ARGUMENT);
  EXPECT_TRUE(has(rw_last_error(), "options.kind: found 9")) << rw_last_error();
  EXPECT_EQ(rw_page_block_create(bytes, nullptr, nullptr), RW_ERROR_ARGUMENT);
  EXPECT_EQ(rw_page_block_free(nullptr), RW_SUCCESS);
}

// Where a machine has several nodes, each of them is tried: docs/explanation/memory.md says how to
// get one in QEMU.
class ThisMachine : public testing::Test {
 protected:
  void SetUp() override {
    const auto allowed = os::allowed_nodes();
    if (!allowed || allowed->empty()) GTEST_SKIP() << "get_mempolicy is refused here";
    const os::Mapping probe = os::reserve_range(os::page_bytes(), os::page_bytes());
    if (const int error =
            os::prefer_nodes(probe.data(), probe.bytes(), {allowed->front()}, false)) {
      GTEST_SKIP() << "mbind is refused here: " << os::error_text(error);
    }
    for (const topology::NumaNode& node : topology::numa_nodes()) {
      const bool usable =
          std::find(allowed->begin(), allowed->end(), node.number) != allowed->end();
      if (usable && node.free_bytes > 16 * bytes) nodes_.push_back(node);
    }
    if (nodes_.empty()) GTEST_SKIP() << "no NUMA node with free memory is shown here";
  }
  static std::size_t bytes_on(int node, const void* address, std::size_t length) {
    const Inspection found = inspect(address, length);
    const auto at = static_cast<std::size_t>(node);
    return at < found.node_bytes.size() ? found.node_bytes[at] : 0;
  }

  std::vector<topology::NumaNode> nodes_;
};

TEST_F(ThisMachine, PutsBlocksOnEachOfItsNodes) {
  for (const topology::NumaNode& node : nodes_) {
    for (const PageSource source :
         {PageSource::shmem_small, PageSource::thp, PageSource::memalign}) {
      MemoryOptions options = on_node(node.number);
      options.source = source;
      const PageBlock block(bytes, options);
      EXPECT_EQ(bytes_on(node.number, block.data(), bytes), bytes)
          << name(source) << " on node " << node.number;
    }
  }
}

TEST_F(ThisMachine, PutsArenasOnEachOfItsNodes) {
  for (const topology::NumaNode& node : nodes_) {
    MemoryOptions options = on_node(node.number);
    options.pages = PagePolicy::prefer;
    options.reserve_bytes = 64 * os::mib;
    Arena arena(options);
    EXPECT_EQ(bytes_on(node.number, arena.allocate(bytes), bytes), bytes) << node.number;
  }
}

TEST_F(ThisMachine, HasTheKindsThatItsNodesAre) {
  const auto all = topology::numa_nodes();
  for (const topology::NumaNode& node : nodes_) {
    const auto kind = topology::kind_of(node, all);
    if (!kind) continue;
    std::size_t found = 0;
    const PageBlock block(bytes, of_kind(*kind));
    for (const topology::NumaNode& one : all) {
      if (topology::kind_of(one, all) == kind) found += bytes_on(one.number, block.data(), bytes);
    }
    EXPECT_EQ(found, bytes) << name(*kind);
  }
}

}  // namespace
}  // namespace ropewalk::memory
