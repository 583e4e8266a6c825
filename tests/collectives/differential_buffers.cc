#include "collectives/differential_buffers.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ropewalk/error.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::test {
namespace {

constexpr std::size_t guard_bytes = 64;

template <class T>
void put(std::byte* to, double value) {
  const T converted = static_cast<T>(value);
  std::memcpy(to, &converted, sizeof converted);
}

}  // namespace

Memory::Memory(const TypeEntry& type, std::size_t elements, bool in_arena, std::size_t skew,
               std::byte guard)
    : in_arena_(in_arena) {
  const std::int64_t last =
      elements == 0 ? 0 : static_cast<std::int64_t>(elements - 1) * type.extent;
  const auto before = static_cast<std::size_t>(std::max<std::int64_t>(0, -type.low));
  const auto behind = static_cast<std::size_t>(std::max<std::int64_t>(0, type.high + last));
  offset_ = guard_bytes + (before + 63) / 64 * 64 + skew;
  bytes_ = offset_ + behind + guard_bytes;
  if (in_arena) {
    start_ = static_cast<std::byte*>(Arena::process().allocate(bytes_));
  } else {
    own_.reset(new std::byte[bytes_]);
    start_ = own_.get();
  }
  std::memset(start_, static_cast<int>(guard), bytes_);
}

Memory::~Memory() {
  if (in_arena_) Arena::process().deallocate(start_);
}

void Memory::take(const Memory& from) { std::memcpy(start_, from.start_, bytes_); }

bool Memory::same(const Memory& other) const {
  return std::memcmp(start_, other.start_, bytes_) == 0;
}

std::int64_t Memory::first_difference(const Memory& other) const {
  const auto at = std::mismatch(start_, start_ + bytes_, other.start_).first - start_;
  return at - static_cast<std::int64_t>(offset_);
}

std::size_t significant(ElementType type) {
  return type == ElementType::long_double ? (std::numeric_limits<long double>::digits + 16) / 8
                                          : size_of(type);
}

void put_number(ElementType type, std::byte* to, double real, double imaginary) {
  switch (type) {
    case ElementType::int8:
      return put<std::int8_t>(to, real);
    case ElementType::uint8:
    case ElementType::byte:
    case ElementType::boolean:
      return put<std::uint8_t>(to, real);
    case ElementType::int16:
      return put<std::int16_t>(to, real);
    case ElementType::uint16:
      return put<std::uint16_t>(to, real);
    case ElementType::int32:
      return put<std::int32_t>(to, real);
    case ElementType::uint32:
      return put<std::uint32_t>(to, real);
    case ElementType::int64:
      return put<std::int64_t>(to, real);
    case ElementType::uint64:
      return put<std::uint64_t>(to, real);
    case ElementType::float32:
      return put<float>(to, real);
    case ElementType::float64:
      return put<double>(to, real);
    case ElementType::long_double:
      return put<long double>(to, real);
    case ElementType::complex_float32:
      return put<float>(to, real), put<float>(to + 4, imaginary);
    case ElementType::complex_float64:
      return put<double>(to, real), put<double>(to + 8, imaginary);
    case ElementType::complex_long_double:
      return put<long double>(to, real), put<long double>(to + sizeof(long double), imaginary);
    default:
      throw Error(ErrorCode::internal, "a type without numbers");
  }
}

}  // namespace ropewalk::test
