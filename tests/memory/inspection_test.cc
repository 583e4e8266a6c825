// Tests inspect on memory of every kind, each method against the other.
#include "memory/inspection.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernel_collapse.hpp"
#include "os/mapping.hpp"
#include "os/memfd.hpp"

namespace ropewalk::memory {
namespace {

std::size_t huge_bytes(const Inspection& found) {
  std::size_t bytes = 0;
  for (const PageUse& use : found.pages) bytes += use.page_bytes >= os::huge_2m ? use.bytes : 0;
  return bytes;
}

// Both methods, where there are both; they must agree on what is resident.
void check(const void* address, std::size_t bytes, std::size_t resident) {
  const Inspection by_smaps = inspect_by_smaps(address, bytes);
  EXPECT_EQ(by_smaps.method, "smaps");
  EXPECT_EQ(by_smaps.resident_bytes, resident);
  if (const auto by_scan = inspect_by_scan(address, bytes)) {
    EXPECT_EQ(by_scan->method, "pagemap-scan");
    EXPECT_EQ(by_scan->resident_bytes, resident);
    EXPECT_GE(huge_bytes(*by_scan), huge_bytes(by_smaps)) << "smaps gives a lower bound";
  }
  const Inspection found = inspect(address, bytes);
  EXPECT_EQ(found.bytes, bytes);
  if (!found.node_bytes.empty()) {
    EXPECT_EQ(std::accumulate(found.node_bytes.begin(), found.node_bytes.end(), std::size_t{0}),
              resident);
  }
}

TEST(Inspect, MallocMemory) {
  const std::vector<char> memory(100001, 1);
  check(memory.data(), memory.size(), memory.size());
  const Inspection found = inspect(memory.data(), memory.size());
  EXPECT_FALSE(found.peers_can_map);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % found.alignment, 0u);
  EXPECT_NE(reinterpret_cast<std::uintptr_t>(memory.data()) % (2 * found.alignment), 0u);
}

TEST(Inspect, TheStack) {
  char local[100];
  std::memset(local, 1, sizeof local);
  check(local, sizeof local, sizeof local);
}

TEST(Inspect, MemoryThatWasNeverTouched) {
  const std::size_t bytes = 16 * os::mib;
  void* found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(found, MAP_FAILED);
  const os::Mapping memory(found, bytes);
  os::advise_small(found, bytes);
  check(found, bytes, 0);
  EXPECT_TRUE(inspect(found, bytes).pages.empty());
  memory.data()[5 * os::page_bytes()] = std::byte{1};
  check(found, bytes, os::page_bytes());
  check(memory.data() + 5 * os::page_bytes() + 10, 20, 20);
  EXPECT_FALSE(inspect(found, bytes).all_huge());
}

TEST(Inspect, ARangeThatIsNotMappedWholeIsAnError) {
  const std::size_t page = os::page_bytes();
  void* found = mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(found, MAP_FAILED);
  auto* data = static_cast<std::byte*>(found);
  ASSERT_EQ(munmap(data + page, page), 0);
  EXPECT_NO_THROW(inspect(data, page));
  EXPECT_NO_THROW(inspect(data + 2 * page, page));
  for (const auto& [at, bytes] : {std::pair{data, 3 * page}, std::pair{data + page, page},
                                  std::pair{data + page - 1, std::size_t{2}}}) {
    try {
      inspect(at, bytes);
      ADD_FAILURE() << "a hole was not seen";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::argument);
      EXPECT_EQ(std::string(error.what()).find("address: "), 0u);
    }
  }
  EXPECT_THROW(inspect(nullptr, 1), Error);
  EXPECT_THROW(inspect(data, SIZE_MAX), Error);
  munmap(data, page);
  munmap(data + 2 * page, page);
}

TEST(Inspect, CollapsedMemoryIsHugeByBothMethods) {
  MemoryOptions options;
  options.source = PageSource::shmem_huge;
  PageBlock block;
  try {
    block = PageBlock(6 * os::mib, options);
  } catch (const Error& error) {
    ASSERT_TRUE(test::may_lack_huge_pages(error.what())) << error.what();
    GTEST_SKIP() << error.what();
  }
  check(block.data(), 6 * os::mib, 6 * os::mib);
  EXPECT_EQ(huge_bytes(inspect_by_smaps(block.data(), 6 * os::mib)), 6 * os::mib);
  EXPECT_TRUE(inspect(block.data(), 6 * os::mib).all_huge());
  // A second map of the same memory, as a peer has it, is huge as well once it is collapsed there.
  const os::Mapping peer = os::map_shared(block.descriptor(), 6 * os::mib, 0, os::huge_2m);
  ASSERT_TRUE(peer);
  EXPECT_EQ(os::populate_write(peer.data(), peer.bytes()), 0);
  EXPECT_EQ(inspect(peer.data(), peer.bytes()).resident_bytes, 6 * os::mib);
}

TEST(Inspect, MixedPagesAreToldApart) {
  MemoryOptions options;
  options.source = PageSource::shmem_huge;
  try {
    const PageBlock huge(os::huge_2m, options);
    // A second map, small pages: the first 2 MiB by small entries, one by one.
    const os::Mapping range = os::reserve_range(2 * os::huge_2m, os::huge_2m);
    ASSERT_TRUE(range);
    ASSERT_EQ(os::map_shared_at(range.data(), huge.descriptor(), os::huge_2m, 0), 0);
    ASSERT_EQ(os::populate_write(range.data(), os::huge_2m), 0);
    void* small = mmap(range.data() + os::huge_2m, os::huge_2m, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    ASSERT_NE(small, MAP_FAILED);
    os::advise_small(small, os::huge_2m);
    std::memset(small, 1, 3 * os::page_bytes());
    const auto found = inspect_by_scan(range.data(), range.bytes());
    if (!found) GTEST_SKIP() << "no PAGEMAP_SCAN in this kernel";
    EXPECT_EQ(found->resident_bytes, os::huge_2m + 3 * os::page_bytes());
    EXPECT_FALSE(found->all_huge());
    EXPECT_EQ(found->pages.back().page_bytes, os::page_bytes());
    EXPECT_GE(found->pages.back().bytes, 3 * os::page_bytes());
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
}

TEST(Inspect, ArenaMemoryCanBeMappedByPeers) {
  MemoryOptions options;
  options.pages = PagePolicy::never;
  options.reserve_bytes = 8 * os::mib;
  Arena arena(options);
  auto* block = static_cast<std::byte*>(arena.allocate(100000));
  check(block, 100000, 100000);
  EXPECT_TRUE(inspect(block, 100000).peers_can_map);
  EXPECT_GE(inspect(block, 100000).alignment, 128u);
  const PageBlock other(1, options);
  EXPECT_FALSE(inspect(other.data(), 1).peers_can_map) << "in no arena";
}

}  // namespace
}  // namespace ropewalk::memory
