// Tests each function of the family, at the threshold and on both sides of it, and its errors.
#include <dlfcn.h>
#include <malloc.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "blocks.hpp"

namespace ropewalk {
namespace {

using test::is_in_arena;
using test::threshold;

bool is_aligned(const void* block, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
}

TEST(Family, TheLibraryIsThereAndTheArenaIsOne) {
  using State = const char*();
  auto* state = reinterpret_cast<State*>(dlsym(RTLD_DEFAULT, "ropewalk_malloc_state"));
  ASSERT_NE(state, nullptr) << "run with LD_PRELOAD";
  EXPECT_STREQ(state(), "on");
  const test::Block block = test::block_of(threshold);
  EXPECT_TRUE(Arena::process().contains(block.get(), threshold));
  void* own = Arena::process().allocate(1000);
  EXPECT_TRUE(is_in_arena(own));
  std::free(own);  // the same arena: either side may free
  EXPECT_THROW(Arena::process().usable_bytes(own), Error);
  EXPECT_TRUE(inspect(block.get(), threshold).peers_can_map);
}

TEST(Family, TheThresholdDivides) {
  const test::Block below = test::block_of(threshold - 1);
  const test::Block at = test::block_of(threshold);
  EXPECT_FALSE(is_in_arena(below.get()));
  EXPECT_TRUE(is_in_arena(at.get()));
  const test::Block zeroed(std::calloc(threshold / 16, 16));
  const test::Block little(std::calloc(threshold / 16 - 1, 16));
  EXPECT_TRUE(is_in_arena(zeroed.get()));
  EXPECT_FALSE(is_in_arena(little.get()));
}

TEST(Family, AlignmentsAsAsked) {
  for (const std::size_t bytes : {std::size_t{100}, threshold, 3 * os::mib + 1}) {
    for (std::size_t alignment = 16; alignment <= 8 * os::mib; alignment *= 2) {
      const test::Block one(memalign(alignment, bytes));
      const test::Block two(aligned_alloc(alignment, bytes));
      void* found = nullptr;
      ASSERT_EQ(posix_memalign(&found, alignment, bytes), 0);
      const test::Block three(found);
      for (const test::Block* block : {&one, &two, &three}) {
        ASSERT_NE(block->get(), nullptr);
        EXPECT_TRUE(is_aligned(block->get(), alignment)) << alignment;
        EXPECT_EQ(Arena::process().contains(block->get(), bytes), bytes >= threshold);
        EXPECT_GE(malloc_usable_size(block->get()), bytes);
        test::fill(block->get(), bytes, alignment);
      }
    }
  }
  const test::Block paged(valloc(threshold));
  const test::Block pages(pvalloc(threshold + 1));
  EXPECT_TRUE(is_in_arena(paged.get()) && is_aligned(paged.get(), 4096));
  EXPECT_TRUE(is_in_arena(pages.get()) && is_aligned(pages.get(), 4096));
  EXPECT_GE(malloc_usable_size(pages.get()), threshold + 4096);
}

TEST(Family, ErrorsAreThoseOfLibc) {
  void* found = &found;
  EXPECT_EQ(posix_memalign(&found, 3, os::mib), EINVAL);
  EXPECT_EQ(posix_memalign(&found, 4, os::mib), EINVAL);
  EXPECT_EQ(posix_memalign(&found, 64, SIZE_MAX - 100), ENOMEM);
  EXPECT_EQ(found, &found) << "left alone";
  volatile std::size_t too_much = SIZE_MAX;
  const auto fails = [](void* block) {
    const bool right = block == nullptr && errno == ENOMEM;
    std::free(block);
    errno = 0;
    return right;
  };
  errno = 0;
  EXPECT_TRUE(fails(std::malloc(too_much)));
  EXPECT_TRUE(fails(std::malloc(too_much / 2)));
  EXPECT_TRUE(fails(std::calloc(too_much / 2, 3)));
  EXPECT_TRUE(fails(std::calloc(too_much >> 30, too_much >> 30)));
  EXPECT_TRUE(fails(std::realloc(nullptr, too_much)));
  EXPECT_TRUE(fails(reallocarray(nullptr, too_much / 2, 3)));
  EXPECT_TRUE(fails(memalign(64, too_much - 4096)));
  EXPECT_TRUE(fails(valloc(too_much - 10000)));
  EXPECT_TRUE(fails(pvalloc(too_much)));
  const test::Block kept = test::block_of(os::mib);
  test::fill(kept.get(), os::mib, 1);
  EXPECT_TRUE(fails(std::realloc(kept.get(), too_much)));
  EXPECT_TRUE(test::holds(kept.get(), os::mib, 1)) << "a realloc that fails leaves the block";
}

TEST(Family, NothingIsAllowed) {
  std::free(nullptr);
  const test::Block none = test::block_of(0);
  const test::Block nothing(std::calloc(0, os::mib));
  EXPECT_NE(none.get(), nullptr);
  EXPECT_NE(nothing.get(), nullptr);
  EXPECT_EQ(malloc_usable_size(nullptr), 0u);
  EXPECT_EQ(std::realloc(std::malloc(os::mib), 0), nullptr);
}

TEST(Family, FreeKeepsErrno) {
  for (const std::size_t bytes : {std::size_t{100}, os::mib, 256 * os::mib}) {
    void* block = std::malloc(bytes);
    errno = 77;
    std::free(block);
    EXPECT_EQ(errno, 77);
  }
}

TEST(Family, OperatorsOfCpp) {
  const auto array = std::make_unique<double[]>(os::mib);
  EXPECT_TRUE(is_in_arena(array.get()));
  struct alignas(1024) Wide {
    char bytes[1024];
  };
  const auto wide = std::make_unique<Wide[]>(1000);
  EXPECT_TRUE(is_in_arena(wide.get()) && is_aligned(wide.get(), 1024));
  volatile std::size_t too_much = SIZE_MAX / 2;
  EXPECT_EQ(::operator new(too_much, std::nothrow), nullptr);
  EXPECT_THROW(::operator delete(::operator new(too_much)), std::bad_alloc);
  std::vector<std::uint64_t> growing;
  for (std::uint64_t i = 0; i < 300000; ++i) growing.push_back(i);
  for (std::uint64_t i = 0; i < 300000; ++i) ASSERT_EQ(growing[i], i);
}

TEST(Family, AStringOfLibcIsFreedByUs) {
  const std::string text(os::mib, 'x');
  const test::Block copy(strdup(text.c_str()));
  EXPECT_TRUE(is_in_arena(copy.get()));
  EXPECT_EQ(text, static_cast<char*>(copy.get()));
}

TEST(Family, FreedTwiceIsCountedAndHarmless) {
  void* block = std::malloc(os::mib);
  const std::uint64_t before = Arena::process().statistics().ignored_frees;
  std::free(block);
  std::free(block);
  EXPECT_EQ(Arena::process().statistics().ignored_frees, before + 1);
  const test::Block one = test::block_of(os::mib);
  const test::Block other = test::block_of(os::mib);
  EXPECT_NE(one.get(), other.get());
}

}  // namespace
}  // namespace ropewalk
