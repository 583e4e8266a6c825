#include "collectives/differential_contents.hpp"

#include <algorithm>
#include <cstring>

namespace ropewalk::test {

void Contents::put_value(std::byte* to, const Scalar& scalar, std::size_t index,
                         bool second) const {
  const std::uint64_t random = drawn_.hash(1000 + rank_, index);
  const bool mine = drawn_.hash(29, index) % ranks_ == rank_;
  const std::size_t bytes = size_of(scalar.type);
  if (!drawn_.is_reduction || op_.kind != OpEntry::Kind::predefined ||
      op_.op == ReductionOp::band || op_.op == ReductionOp::bor || op_.op == ReductionOp::bxor) {
    for (std::size_t i = 0; i < bytes; i += 8) {
      const std::uint64_t more = random * (i + 1);
      std::memcpy(to + i, &more, std::min<std::size_t>(8, bytes - i));
    }
    return;
  }
  const auto small = [&](int shift, int values) {
    return static_cast<double>((random >> shift) % static_cast<unsigned>(values));
  };
  switch (op_.op) {
    case ReductionOp::sum:  // 16 ranks x 7 fit 8 bits
      return put_number(scalar.type, to, small(0, 8), small(8, 8));
    case ReductionOp::prod:  // one rank's factor, so that nothing overflows or rounds
      return put_number(scalar.type, to, mine ? 1 + small(0, 5) : 1, mine ? 1 + small(8, 5) : 0);
    case ReductionOp::land:
    case ReductionOp::lor:
    case ReductionOp::lxor:
      return put_number(scalar.type, to, small(0, 5) > 0 ? 1 : 0, 0);
    case ReductionOp::minloc:
    case ReductionOp::maxloc:  // many equal values, so that indices decide
      return put_number(scalar.type, to, second ? small(0, 50) : small(8, 3), 0);
    default:
      return put_number(scalar.type, to, small(0, 100), 0);
  }
}

void Contents::fill(std::byte* data, const Region& region) const {
  for (const Block& block : region.filled) {
    for (std::size_t index = block.first; index < block.first + block.count; ++index) {
      std::byte* element = data + static_cast<std::int64_t>(index) * type_.extent;
      for (std::size_t k = 0; k < type_.scalars.size(); ++k) {
        const Scalar& scalar = type_.scalars[k];
        put_value(element + scalar.offset, scalar, index * type_.scalars.size() + k, k > 0);
      }
    }
  }
}

void Contents::forget(std::byte* data, const Region& region) const {
  for (std::size_t index = 0; index < region.elements; ++index) {
    std::byte* element = data + static_cast<std::int64_t>(index) * type_.extent;
    if (index >= region.undefined_from) {
      std::memset(element + type_.low, 0, static_cast<std::size_t>(type_.high - type_.low));
    } else if (type_.predefined) {
      forget_padding(element);
    }
  }
}

void Contents::forget_padding(std::byte* element) const {
  std::byte kept[2 * sizeof(long double)] = {};
  const auto extent = static_cast<std::size_t>(type_.extent);
  for (const Scalar& scalar : type_.scalars) {
    const bool two = scalar.type == ElementType::complex_long_double;
    const ElementType part = two ? ElementType::long_double : scalar.type;
    for (std::size_t at = 0; at < size_of(scalar.type); at += size_of(part)) {
      const auto offset = static_cast<std::size_t>(scalar.offset) + at;
      std::memcpy(kept + offset, element + offset, significant(part));
    }
  }
  std::memcpy(element, kept, extent);
}

}  // namespace ropewalk::test
