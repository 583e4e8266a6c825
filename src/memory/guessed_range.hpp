// How many addresses an arena reserves when nobody has asked for a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace ropewalk::memory {

constexpr std::size_t least_range = std::size_t{64} << 20;  // of a tiny machine
// Under a limit of the address space, so much holds control blocks and staging of some
// communicators.
constexpr std::size_t least_limited_range = std::size_t{16} << 20;

// Returns half of the memory. But every rank maps the arenas of all ranks of its node, so that
// these take - a quarter of a limit of the address space (RLIMIT_AS), where there is one; - half of
// the 47 bits that a process has, where there is none, which many ranks on a node of more than 1
// TiB would otherwise exceed.
std::size_t range_without_limit(std::uint64_t memory, std::optional<int> node_ranks) noexcept;
std::size_t range_within(std::uint64_t limit, std::uint64_t memory, int node_ranks) noexcept;

// Returns one of the two, for this process.
std::size_t guess_range();

}  // namespace ropewalk::memory
