#include "os/imports.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "os/pagemap.hpp"

namespace ropewalk::os {
namespace {

int allocations = 0;
int frees = 0;

int count_allocation(void** out, std::size_t, std::size_t bytes) {
  ++allocations;
  *out = std::malloc(bytes);
  return *out == nullptr ? ENOMEM : 0;
}
void count_free(void* block) {
  ++frees;
  std::free(block);
}
pid_t no_process() { return -7; }

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

// The parameter is the name of a library: its calls are bound at the first call, or all at once,
// after which its tables are read-only.
class Imports : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    library_ = dlopen((std::string(IMPORTS_FOLDER) + "/" + GetParam()).c_str(), RTLD_LAZY);
    ASSERT_NE(library_, nullptr) << dlerror();
    allocations = frees = 0;
  }
  void TearDown() override { dlclose(library_); }

  template <class Function>
  Function* symbol(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  void* library_ = nullptr;
};

TEST_P(Imports, AreReplacedForThisLibraryAlone) {
  auto* allocate = symbol<void*(std::size_t)>("imports_allocate");
  auto* release = symbol<void (*)(void*)>("imports_free");
  (*release)(allocate(100));
  EXPECT_EQ(replace_import(GetParam(), "posix_memalign", address_of(&count_allocation)), 1u);
  EXPECT_EQ(replace_import(GetParam(), "free", address_of(&count_free)), 1u);
  EXPECT_EQ(allocations + frees, 0);
  (*release)(allocate(100));
  EXPECT_EQ(allocations, 1);
  EXPECT_EQ(frees, 1);
  void* own = nullptr;
  ASSERT_EQ(posix_memalign(&own, 64, 100), 0);
  std::free(own);
  EXPECT_EQ(allocations + frees, 2);
}

TEST_P(Imports, WhoseAddressCodeReadsAreReplaced) {
  auto* asks = symbol<pid_t (*())()>("imports_asks");
  EXPECT_EQ(asks()(), getppid());
  EXPECT_EQ(replace_import(GetParam(), "getppid", address_of(&no_process)), 1u);
  EXPECT_EQ(asks()(), -7);
}

TEST_P(Imports, OfWhichThereAreNoneAreNotReplaced) {
  EXPECT_EQ(replace_import(GetParam(), "getpid", address_of(&no_process)), 0u);
  EXPECT_EQ(replace_import(GetParam(), "getppi", address_of(&no_process)), 0u);
  EXPECT_EQ(replace_import("x" + GetParam(), "getppid", address_of(&no_process)), 0u);
}

INSTANTIATE_TEST_SUITE_P(Tables, Imports,
                         testing::Values("libimports-lazy.so", "libimports-now.so"),
                         [](const auto& one) { return one.index == 0 ? "Lazy" : "ReadOnly"; });

}  // namespace
}  // namespace ropewalk::os
