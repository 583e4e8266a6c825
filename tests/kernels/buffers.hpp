// Memory for the tests of the kernels: buffers at any offset from a cache line, with guards.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"
#include "kernels/reference.hpp"

namespace ropewalk::testing {

inline std::vector<InstructionSet> available_sets() {
  std::vector<InstructionSet> sets;
  for (const auto set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512})
    if (available(set)) sets.push_back(set);
  return sets;
}

// `bytes` at `offset` bytes past a cache line, with a cache line of guard on either side.
class Buffer {
 public:
  Buffer(std::size_t bytes, std::size_t offset)
      : lines_((bytes + offset) / 64 + 3), bytes_(bytes), offset_(offset) {}
  std::byte* data() { return lines_[1].bytes + offset_; }
  const std::byte* data() const { return lines_[1].bytes + offset_; }
  void paint() { std::memset(lines_.data(), 0xa5, lines_.size() * sizeof(Line)); }
  // After paint: the bytes before and after the data are as they were.
  bool guarded() const {
    const std::byte* all = lines_[0].bytes;
    const std::size_t before = 64 + offset_;
    for (std::size_t i = 0; i < lines_.size() * sizeof(Line); ++i)
      if ((i < before || i >= before + bytes_) && all[i] != std::byte{0xa5}) return false;
    return true;
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
  std::size_t bytes_;
  std::size_t offset_;
};

struct Case {
  ElementType type;
  ReductionOp op;
  std::size_t count;
};
inline std::string describe(const Case& c) {
  return std::string(name(c.op)) + " of " + std::to_string(c.count) + " " + name(c.type);
}

// Returns the first element in which `found` is not `expected`, as text; empty where there is none.
// Bytes of gaps must be as in `expected`, which is painted as the outputs are.
inline std::string difference(const Case& c, const std::byte* found, const std::byte* expected) {
  const std::size_t size = size_of(c.type);
  if (c.count == 0) return {};
  if (std::memcmp(found, expected, c.count * size) == 0) return {};
  for (std::size_t i = 0; i < c.count; ++i) {
    const std::byte* f = found + i * size;
    const std::byte* e = expected + i * size;
    if (same(c.type, f, e)) continue;
    std::string text = describe(c) + ", element " + std::to_string(i) + ": found";
    for (std::size_t k = 0; k < size; ++k) text += " " + std::to_string(std::to_integer<int>(f[k]));
    text += ", expected";
    for (std::size_t k = 0; k < size; ++k) text += " " + std::to_string(std::to_integer<int>(e[k]));
    return text;
  }
  return {};
}

template <class F>
void for_each_type(ReductionOp op, F f) {
  for (int i = 0; i < element_type_count; ++i)
    if (supports(op, static_cast<ElementType>(i))) f(static_cast<ElementType>(i));
}

}  // namespace ropewalk::testing
