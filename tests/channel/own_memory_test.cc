// Which memory the kernel copies for other processes: this process's own memory, but not the page
// of its clock that the kernel maps into it.
#include "channel/own_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

using ropewalk::channel::OwnMemory;

constexpr std::size_t page = 4096;

// Returns the first page of [vvar], which the kernel maps into every process (VM_PFNMAP); null
// where there is none.
const void* page_of_the_kernel() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    if (line.find("[vvar]") == std::string::npos) continue;
    std::uintptr_t begin = 0;
    std::sscanf(line.c_str(), "%lx", &begin);
    return reinterpret_cast<const void*>(begin);
  }
  return nullptr;
}

TEST(OwnMemory, OfTheProgramIsCopied) {
  OwnMemory own;
  const std::vector<char> heap(100'000);
  char stack[100] = {};
  for (int again = 0; again < 3; ++again) {
    EXPECT_TRUE(own.is_copied_by_kernel(heap.data(), heap.size()));
    EXPECT_TRUE(own.is_copied_by_kernel(stack, sizeof stack));
    EXPECT_TRUE(own.is_copied_by_kernel(nullptr, 0));
  }
}

TEST(OwnMemory, OfADriverIsNot) {
  const void* memory = page_of_the_kernel();
  if (memory == nullptr) GTEST_SKIP() << "no [vvar] in this process";
  OwnMemory own;
  for (int again = 0; again < 3; ++again) EXPECT_FALSE(own.is_copied_by_kernel(memory, 100));
}

// A gap at either end that nobody reads: the call goes as it would without the look.
TEST(OwnMemory, WhereThereIsNoneNothingIsRefused) {
  OwnMemory own;
  char* memory = static_cast<char*>(
      mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  munmap(memory, page);
  munmap(memory + 2 * page, page);
  EXPECT_TRUE(own.is_copied_by_kernel(memory, 2 * page));
  EXPECT_TRUE(own.is_copied_by_kernel(memory + page, 2 * page));
  munmap(memory + page, page);
}

}  // namespace
