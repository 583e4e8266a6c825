// Limits of the process come back as errors that name the remedy, never as signals.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "child.hpp"
#include "os/hugepool.hpp"
#include "os/mapping.hpp"
#include "pattern.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk {
namespace {

bool limit(int which, std::size_t bytes) {
  rlimit value{};
  if (getrlimit(static_cast<__rlimit_resource>(which), &value) != 0) return false;
  value.rlim_cur = bytes;
  return setrlimit(static_cast<__rlimit_resource>(which), &value) == 0;
}

// Limits the address space to so much beyond what is mapped now.
bool limit_growth(std::size_t bytes) {
  const auto mapped_pages = os::read_number("/proc/self/statm");
  return mapped_pages && limit(RLIMIT_AS, *mapped_pages * os::page_bytes() + bytes);
}

// Exits with 0 where `body` throws Error(memory) with the text.
template <class Body>
int expect_memory_error(const char* text, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::memory) return 1;
    if (std::string(error.what()).find(text) != std::string::npos) return 0;
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 3;
}

MemoryOptions small(std::size_t reserve) {
  MemoryOptions options;
  options.pages = PagePolicy::never;
  options.reserve_bytes = reserve;
  return options;
}

TEST(Limits, OfAddressSpace) {
  if (test::sanitized) GTEST_SKIP() << "sanitizers need the address space";
  EXPECT_EQ(test::in_child([] {
              if (!limit_growth(os::gib)) return 10;
              const int arena =
                  expect_memory_error("ulimit -v", [] { Arena large(small(4 * os::gib)); });
              if (arena != 0) return arena;
              const int block = expect_memory_error("ulimit -v", [] {
                MemoryOptions options;
                options.source = PageSource::shmem_small;
                PageBlock large(2 * os::gib, options);
              });
              if (block != 0) return 20 + block;
              // A guessed range fits.
              return Arena(small(0)).reserved_bytes() < os::gib ? 0 : 30;
            }),
            0);
}

TEST(Limits, OfFileSizeAreNoSignal) {
  EXPECT_EQ(test::in_child([] {
              if (!limit(RLIMIT_FSIZE, 8 * os::mib)) return 10;
              Arena arena(small(64 * os::mib));
              void* fits = arena.allocate(4 * os::mib);
              const int code =
                  expect_memory_error("ulimit -f", [&] { arena.allocate(16 * os::mib); });
              test::fill(fits, 4 * os::mib, 1);
              return code;
            }),
            0);
}

TEST(Limits, OfDescriptors) {
  if (test::sanitized) GTEST_SKIP() << "the sanitizer's own checks need a descriptor";
  EXPECT_EQ(test::in_child([] {
              if (!limit(RLIMIT_NOFILE, 3)) return 10;
              return expect_memory_error("", [] { Arena none(small(8 * os::mib)); });
            }),
            0);
}

// If more than there is were touched, the kernel would kill the process instead of returning an
// error.
TEST(Limits, OfMemoryAreSeenBeforeItIsTouched) {
  const std::size_t more = os::total_memory_bytes() * 2;
  Arena arena(small(more + os::gib));
  EXPECT_EQ(expect_memory_error("left by", [&] { arena.allocate(more); }), 0);
  EXPECT_NO_THROW(arena.allocate(os::mib));
}

}  // namespace
}  // namespace ropewalk
