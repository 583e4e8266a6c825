#include "os/numa.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace ropewalk::os {
namespace {

constexpr unsigned long most_nodes = 1024;  // of the kernels that distributions build
constexpr unsigned long word_bits = CHAR_BIT * sizeof(unsigned long);
using NodeMask = std::array<unsigned long, most_nodes / word_bits>;

// The kernel counts the bits of a mask from 1.
constexpr unsigned long mask_bits = most_nodes + 1;

// In linux/mempolicy.h from Linux 5.15 on.
constexpr int prefer_many = 5;

int set_policy(void* address, std::size_t bytes, int mode, const NodeMask& mask,
               unsigned flags) noexcept {
  const bool none = mode == MPOL_DEFAULT;
  const long result = syscall(SYS_mbind, address, bytes, mode, none ? nullptr : mask.data(),
                              none ? 0 : mask_bits, flags);
  return result == 0 ? 0 : errno;
}

}  // namespace

int prefer_nodes(void* address, std::size_t bytes, const std::vector<int>& nodes,
                 bool move) noexcept {
  NodeMask mask{};
  for (const int node : nodes) {
    const auto bit = static_cast<unsigned long>(node);
    if (node < 0 || bit >= most_nodes) return EINVAL;
    mask[bit / word_bits] |= 1UL << bit % word_bits;
  }
  const int mode = nodes.size() == 1 ? MPOL_PREFERRED : prefer_many;
  return set_policy(address, bytes, mode, mask, move ? MPOL_MF_MOVE : 0);
}

int prefer_no_node(void* address, std::size_t bytes) noexcept {
  return set_policy(address, bytes, MPOL_DEFAULT, {}, 0);
}

std::optional<std::vector<int>> allowed_nodes() {
  NodeMask mask{};
  const long result = syscall(SYS_get_mempolicy, nullptr, mask.data(), mask_bits, nullptr,
                              static_cast<unsigned long>(MPOL_F_MEMS_ALLOWED));
  if (result != 0) return std::nullopt;
  std::vector<int> nodes;
  for (unsigned long bit = 0; bit < most_nodes; ++bit) {
    if ((mask[bit / word_bits] >> bit % word_bits & 1) != 0) nodes.push_back(static_cast<int>(bit));
  }
  return nodes;
}

}  // namespace ropewalk::os
