#include "os/hash.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace ropewalk::os {
namespace {

// These are the vectors that the authors of FNV publish (www.isthe.com/chongo/tech/comp/fnv).
TEST(Hash, IsFnv1a) {
  EXPECT_EQ(hash(""), 0xcbf29ce484222325U);
  EXPECT_EQ(hash("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(hash("foobar"), 0x85944171f73967e8U);
  EXPECT_EQ(hash("bar", hash("foo")), hash("foobar"));
  EXPECT_EQ(hash_bytes("foobar", 3), hash("foo"));
}

// Ranks that pass counts of equal sum, or that differ in the upper halves alone, are told apart.
TEST(Hash, OfCountsTellsThemApart) {
  const std::array<std::array<std::size_t, 3>, 6> lists = {{{1, 2, 3},
                                                            {3, 2, 1},
                                                            {2, 2, 2},
                                                            {0, 0, 6},
                                                            {std::size_t{1} << 32, 2, 3},
                                                            {std::size_t{1} << 40, 2, 3}}};
  std::set<std::uint32_t> seen;
  for (const auto& counts : lists) seen.insert(hash_counts(counts.data(), 3));
  EXPECT_EQ(seen.size(), lists.size());
}

}  // namespace
}  // namespace ropewalk::os
