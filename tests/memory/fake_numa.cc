#include "fake_numa.hpp"

#include <dlfcn.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>

#include "os/pagemap.hpp"

namespace ropewalk::test {
namespace {

constexpr unsigned long word_bits = CHAR_BIT * sizeof(unsigned long);
thread_local FakeNuma* fake = nullptr;

std::vector<int> nodes_in(const unsigned long* mask, unsigned long bits) {
  std::vector<int> nodes;
  // The kernel reads one bit less than it is told.
  for (unsigned long bit = 0; mask != nullptr && bit + 1 < bits; ++bit) {
    if ((mask[bit / word_bits] >> bit % word_bits & 1) != 0) nodes.push_back(static_cast<int>(bit));
  }
  return nodes;
}

long bind(const long* of) {
  const auto begin = static_cast<std::uintptr_t>(of[0]);
  const auto bytes = static_cast<std::size_t>(of[1]);
  const auto* mask = reinterpret_cast<const unsigned long*>(of[3]);
  return fake->bind({begin, begin + bytes, static_cast<int>(of[2]),
                     nodes_in(mask, static_cast<unsigned long>(of[4])), (of[5] & MPOL_MF_MOVE) != 0,
                     os::present_pages(reinterpret_cast<const void*>(begin), bytes).empty()});
}

long tell_allowed(const long* of) {
  auto* mask = reinterpret_cast<unsigned long*>(of[1]);
  for (const int node : fake->allowed) {
    mask[static_cast<unsigned long>(node) / word_bits] |=
        1UL << static_cast<unsigned long>(node) % word_bits;
  }
  return 0;
}

long tell_places(const long* of) {
  if (!fake->tells_places) {
    errno = EPERM;
    return -1;
  }
  const auto* pages = reinterpret_cast<const std::uintptr_t*>(of[2]);
  auto* places = reinterpret_cast<int*>(of[4]);
  for (long i = 0; i < of[1]; ++i) places[i] = fake->node_of(pages[i]);
  return 0;
}

}  // namespace

FakeNuma::FakeNuma(std::vector<topology::NumaNode> nodes)
    : nodes_(std::move(nodes)), before_(topology::replace_numa_nodes(&nodes_)) {
  for (const topology::NumaNode& node : nodes_) allowed.push_back(node.number);
  fake = this;
}

FakeNuma::~FakeNuma() {
  fake = nullptr;
  topology::replace_numa_nodes(before_);
}

long FakeNuma::bind(const Binding& binding) {
  if (error != 0) {
    errno = error;
    return -1;
  }
  if (binding.move && movable) full_goes_to.reset();
  bindings.push_back(binding);
  return 0;
}

int FakeNuma::node_of(std::uintptr_t page) const {
  const auto found = std::find_if(bindings.rbegin(), bindings.rend(), [&](const Binding& one) {
    return one.begin <= page && page < one.end;
  });
  if (found == bindings.rend() || found->nodes.empty()) return 0;
  return full_goes_to.value_or(found->nodes.front());
}

}  // namespace ropewalk::test

extern "C" long syscall(long number, ...) noexcept {
  using Call = long(long, ...);
  static auto* const original = reinterpret_cast<Call*>(dlsym(RTLD_NEXT, "syscall"));
  long of[6];
  va_list list;
  va_start(list, number);
  for (long& one : of) one = va_arg(list, long);
  va_end(list);
  if (ropewalk::test::fake != nullptr) {
    if (number == SYS_mbind) return ropewalk::test::bind(of);
    if (number == SYS_get_mempolicy) return ropewalk::test::tell_allowed(of);
    if (number == SYS_move_pages) return ropewalk::test::tell_places(of);
  }
  return original(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}
