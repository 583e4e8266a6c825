// Scattered memory, and the transfers out of it.
#include <gtest/gtest.h>

#include <cstring>

#include "common/pages.hpp"
#include "pages/fragmented.hpp"
#include "pages/transfer.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

TEST(Contiguity, CountsRunsOfNeighbours) {
  const Contiguity found = contiguity_of({7, 8, 9, 3, 0, 4, 5, 5});
  EXPECT_EQ(found.pages, 7U);
  EXPECT_EQ(found.runs, 4U);  // 7-9, 3, 4-5, 5
  EXPECT_EQ(contiguity_of({}).mean_run_bytes(), 0U);
  EXPECT_EQ(contiguity_of({1, 2, 3, 4}).mean_run_bytes(), 16384U);
}

// Root alone sees frame numbers. On a busy machine others may take the holes before we do, so a
// few attempts are made; code that scatters nothing fails them all.
TEST(Fragmented, SmallPagesComeScattered) {
  std::optional<Contiguity> found;
  for (int attempt = 0; attempt < 8; ++attempt) {
    const FragmentedMemory fragmented(16 * mebibyte);
    const SmallPages pages(2 * mebibyte);
    std::memset(pages.data(), 1, 2 * mebibyte);
    found = contiguity(pages.data(), 2 * mebibyte);
    if (!found) GTEST_SKIP() << "frame numbers are shown to root alone";
    EXPECT_EQ(found->pages, 512U);
    if (found->runs > 51) return;  // a tenth of the worst case; pages in order make a handful
  }
  FAIL() << text(found);
}

TEST(Fragmented, PagesStaySmall) {
  const SmallPages pages(2 * mebibyte);
  std::memset(pages.data(), 1, 2 * mebibyte);
  EXPECT_EQ(backing_of("scattered", pages.data(), 2 * mebibyte).text, "4 KiB 100 %");
}

TEST(Fragmented, SecondMappingSeesTheSameBytes) {
  const SmallPages pages(3 * 4096);
  std::memcpy(pages.data() + 4096, "ropewalk", 8);
  const BlockMapping view(pages.descriptor(), 3 * 4096);
  EXPECT_NE(view.data(), pages.data());
  EXPECT_EQ(std::memcmp(view.data() + 4096, "ropewalk", 8), 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data()) % (2 * mebibyte), 0U);
}

template <class Kind>
void transfers_arrive() {
  Kind path(mebibyte);
  for (const char* pages : {"scattered", "huge"}) {
    EXPECT_GT(path.fresh(pages, mebibyte), 0);
    EXPECT_GT(path.steady(pages, 65536, 3), 0);
    EXPECT_TRUE(path.verified()) << pages;
  }
}

TEST(Transfer, MappedArrives) { transfers_arrive<MappedPath>(); }

TEST(Transfer, KernelArrives) {
  try {
    transfers_arrive<KernelPath>();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    GTEST_SKIP() << error.what();
  }
}

}  // namespace
}  // namespace ropewalk::bench
