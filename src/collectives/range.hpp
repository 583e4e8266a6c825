// Parts of a buffer.
#pragma once

#include <algorithm>
#include <cstddef>

namespace ropewalk::collectives {

// A half-open range of elements or bytes.
struct Range {
  std::size_t begin;
  std::size_t end;
  std::size_t length() const noexcept { return end - begin; }
};

// Returns the part of rank `part` when `count` elements are dealt to `parts`, cut at multiples of
// `grain`.
inline Range slice(std::size_t count, int part, int parts, std::size_t grain) {
  const std::size_t grains = (count + grain - 1) / grain;
  const auto edge = [&](int index) {
    const auto whole = grains / parts * index;
    const auto rest = grains % parts * index / parts;
    return std::min(count, (whole + rest) * grain);
  };
  return {edge(part), edge(part + 1)};
}

}  // namespace ropewalk::collectives
