// operator new fails: functions that cannot throw do without.
#include <gtest/gtest.h>

#include "child.hpp"
#include "memory/fork_policy.hpp"
#include "os/mapping.hpp"
#include "pattern.hpp"
#include "ropewalk/memory.hpp"
#include "support/operator_new.hpp"

namespace ropewalk::test {
namespace {

bool fails = false;

MemoryOptions small() {
  MemoryOptions options;
  options.reserve_bytes = 64 * os::mib;
  return options;
}

TEST(NoMemory, TrimIsLeftForLater) {
  Arena arena(small());
  arena.deallocate(arena.allocate(5 * os::mib));
  ASSERT_GT(arena.statistics().cached_bytes, 0U);
  fails = true;
  arena.trim();
  fails = false;
  arena.trim();
  EXPECT_EQ(arena.statistics().cached_bytes, 0U);
}

TEST(NoMemory, AChildGetsNothing) {
  const memory::ForkPolicy before = memory::set_fork_policy(memory::ForkPolicy::copy);
  Arena arena(small());
  void* block = arena.allocate(os::mib);
  fill(block, os::mib, 1);
  arena.deallocate(arena.allocate(5 * os::mib));
  fails = true;
  const int code = in_child([&] {
    fails = false;
    if (arena.contains(block)) return 1;
    fill(arena.allocate(os::mib), os::mib, 2);
    return 0;
  });
  fails = false;
  EXPECT_EQ(code, 0);
  memory::set_fork_policy(before);
}

}  // namespace

void before_new(bool may_throw) {
  if (fails && may_throw) throw std::bad_alloc();
}

}  // namespace ropewalk::test
