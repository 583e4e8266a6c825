#include "generator/buffers.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace generator {
namespace {

constexpr std::size_t guard_bytes = 64;
constexpr std::byte receive_guard{0xA5};
constexpr std::byte send_guard{0x3C};

bool bit(std::uint64_t mask, int rank) { return (mask >> rank % 64 & 1) != 0; }

// A pair's gaps are not told from data by everybody: they are the same on both sides.
std::byte guard_of_sends(const Side& side) {
  return side.type->of == Class::derived ? send_guard : receive_guard;
}

template <class Work>
void for_elements(const Side& side, const std::byte* data, const Work& work) {
  for (const Block& block : side.blocks) {
    for (int i = 0; i < block.count; ++i) {
      const std::int64_t index = block.first + i;
      work(const_cast<std::byte*>(data) + index * side.type->extent, index);
    }
  }
}

template <class T>
void put(std::byte* to, double value) {
  const T converted = static_cast<T>(value);
  std::memcpy(to, &converted, sizeof converted);
}

void put_number(const Scalar& scalar, std::byte* to, double value) {
  if (scalar.kind == 'f') {
    if (scalar.bytes == 4) return put<float>(to, value);
    return scalar.bytes == 8 ? put<double>(to, value) : put<long double>(to, value);
  }
  const auto number = static_cast<std::int64_t>(value);
  std::memcpy(to, &number, static_cast<std::size_t>(scalar.bytes));  // little-endian
}

void put_bits(const Scalar& scalar, std::byte* to, std::uint64_t random) {
  for (int at = 0; at < scalar.bytes; at += 8) {
    const std::uint64_t more = random * static_cast<std::uint64_t>(at + 1);
    std::memcpy(to + at, &more, static_cast<std::size_t>(std::min(8, scalar.bytes - at)));
  }
}

// Returns numbers whose combination is exact in any order, and in range on sixteen ranks.
double exact_value(const Case& drawn, const Type& type, std::size_t scalar, int rank,
                   std::uint64_t random) {
  // Open MPI 5.0 takes MPI_OFFSET for unsigned.
  if (type.of == Class::shared_integer && drawn.op < Operation::sum) return random % 100;
  if (type.of == Class::logical) return static_cast<double>(random % 2);
  const bool few = rank < 3;
  switch (drawn.op) {
    case Operation::sum:
      return static_cast<double>(random % 8);
    case Operation::prod:
      if (type.of == Class::complex)
        return scalar == 0 ? 1 : static_cast<double>(few && random % 2);
      return random % 3 == 0 ? -1 : few ? 1 + static_cast<double>(random % 2) : 1;
    case Operation::land:
    case Operation::lor:
    case Operation::lxor:
      return static_cast<double>(random % 3);
    case Operation::maxloc:
    case Operation::minloc:  // many equal values, so that indices decide
      return static_cast<double>(scalar == 0 ? random % 3 : random % 100);
    default:
      return static_cast<double>(random % 100) - 50;
  }
}

bool takes_any_bits(const Case& drawn, const Scalar& scalar) {
  if (!drawn.reduces() || drawn.op >= Operation::user_sum) return true;
  if (drawn.of == Interface::cpp) return scalar.kind != 'f';
  return drawn.op == Operation::band || drawn.op == Operation::bor || drawn.op == Operation::bxor;
}

void put_value(const Case& drawn, const Type& type, std::size_t k, std::byte* element, int rank,
               std::uint64_t random) {
  const Scalar& scalar = type.scalars[k];
  std::byte* to = element + scalar.offset;
  if (takes_any_bits(drawn, scalar)) return put_bits(scalar, to, random);
  // The C++ interface promises the order of ranks: loops round as it does.
  const double value = drawn.of == Interface::cpp
                           ? static_cast<double>(random % 2000001) / 1000000.0 - 1.0
                           : exact_value(drawn, type, k, rank, random >> 24);
  put_number(scalar, to, value);
}

}  // namespace

Allocator private_memory() {
  return {[](std::size_t bytes, bool) { return ::operator new(bytes); },
          [](void* memory, std::size_t, bool) { ::operator delete(memory); }};
}

Memory::Memory(const Allocator& allocator, const Side& side, bool shared, std::size_t skew,
               std::byte guard)
    : allocator_(allocator), shared_(shared) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  const Type& type = *side.type;
  for (const Block& block : side.blocks) {
    if (block.count == 0) continue;
    const std::int64_t last = (block.first + block.count - 1) * type.extent;
    low = std::min({low, block.first * type.extent + type.low, last + type.low});
    high = std::max({high, block.first * type.extent + type.high, last + type.high});
  }
  const auto before = (static_cast<std::size_t>(-low) + 63) / 64 * 64;
  offset_ = guard_bytes + before + skew * type.largest_scalar();
  bytes_ = offset_ + static_cast<std::size_t>(high) + guard_bytes;
  start_ = static_cast<std::byte*>(allocator_.allocate(bytes_, shared_));
  std::memset(start_, static_cast<int>(guard), bytes_);
}

Memory::~Memory() { allocator_.deallocate(start_, bytes_, shared_); }

void Memory::take(const Memory& from) { std::memcpy(start_, from.start_, bytes_); }

bool Memory::same(const Memory& other) const {
  return std::memcmp(start_, other.start_, bytes_) == 0;
}

std::string Memory::difference(const char* which, const Side& side, const Memory& expected) const {
  if (same(expected)) return "";
  const auto place = std::mismatch(start_, start_ + bytes_, expected.start_).first - start_;
  const std::int64_t at = place - static_cast<std::int64_t>(offset_);
  const std::int64_t extent = std::max<std::int64_t>(1, side.type->extent);
  const auto number = [place](const std::byte* bytes) {
    return std::to_string(static_cast<int>(bytes[place]));
  };
  return std::string(which) + " buffer differs at byte " + std::to_string(at) + " (element " +
         std::to_string(at / extent) + "): " + number(start_) + ", expected " +
         number(expected.start_);
}

Buffers::Buffers(const Allocator& allocator, const Case& drawn, const Plan& plan, int rank,
                 bool private_only)
    : send(allocator, plan.send, !private_only && bit(drawn.send_shared, rank), drawn.skew,
           guard_of_sends(plan.send)),
      receive(allocator, plan.receive, !private_only && bit(drawn.receive_shared, rank), drawn.skew,
              receive_guard) {
  fill(drawn, plan.send, send.data(), rank, 1);
  fill(drawn, plan.receive, receive.data(), rank, 2);
}

void fill(const Case& drawn, const Side& side, const std::byte* data, int rank,
          std::uint64_t salt) {
  const std::uint64_t key = drawn.hash(23, salt << 20 ^ static_cast<unsigned>(rank));
  const Type& type = *side.type;
  for_elements(side, data, [&](std::byte* element, std::int64_t index) {
    for (std::size_t k = 0; k < type.scalars.size(); ++k) {
      const std::uint64_t random =
          mix(key + static_cast<std::uint64_t>(index) * type.scalars.size() + k);
      put_value(drawn, type, k, element, rank, random);
    }
  });
}

void clear_padding(const Side& side, const Memory& memory) {
  const Type& type = *side.type;
  std::vector<std::int64_t> nobody;
  const auto add = [&nobody](std::int64_t from, std::int64_t to) {
    for (; from < to; ++from) nobody.push_back(from);
  };
  for (const Scalar& scalar : type.scalars) {
    add(scalar.offset + significant(scalar), scalar.offset + scalar.bytes);
  }
  if (type.of == Class::pair) {
    add(type.scalars[0].offset + type.scalars[0].bytes, type.scalars[1].offset);
    add(type.scalars[1].offset + type.scalars[1].bytes, type.extent);
  }
  if (nobody.empty()) return;
  for_elements(side, memory.data(), [&](std::byte* element, std::int64_t) {
    for (const std::int64_t at : nobody) element[at] = std::byte{0};
  });
}

void fill_behind(const Catalogue& catalogue, const Case& drawn, const Side& receive,
                 const Memory& memory, int rank, int ranks) {
  if (!drawn.scatters() || !drawn.in_place) return;
  const Shares of = shares(drawn, drawn.agreed_type(catalogue), ranks);
  const int result = of.each[static_cast<std::size_t>(rank)] * receive.type->repeat;
  Side behind = receive;
  behind.blocks = {{result, receive.blocks.front().count - result}};
  fill(drawn, behind, memory.data(), rank, 3);
}

}  // namespace generator
