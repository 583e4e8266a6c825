// Buffers of the differential test, with guards around them, and numbers put into them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "collectives/differential_types.hpp"

namespace ropewalk::test {

// A run of elements.
struct Block {
  std::size_t first;
  std::size_t count;
};

// Room for elements of a type, with guards around it, in the arena or in private memory.
class Memory {
 public:
  Memory(const TypeEntry& type, std::size_t elements, bool in_arena, std::size_t skew,
         std::byte guard);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return start_ + offset_; }
  void take(const Memory& from);  // all bytes, guards too, of one of the same size
  bool same(const Memory& other) const;
  std::int64_t first_difference(const Memory& other) const;  // counted from data()

 private:
  bool in_arena_;
  std::unique_ptr<std::byte[]> own_;
  std::byte* start_ = nullptr;
  std::size_t offset_ = 0;
  std::size_t bytes_ = 0;
};

// Bytes of an element that hold data; the rest of a long double is nobody's, and not always moved.
std::size_t significant(ElementType type);

void put_number(ElementType type, std::byte* to, double real, double imaginary);

}  // namespace ropewalk::test
