#include "known_types.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>

#include "datatypes.hpp"
#include "mpi/datatypes.hpp"

namespace ropewalk::preload::onesided {
namespace {

std::mutex filling;

template <class T>
T read(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

struct Sum {
  template <class T>
  static T of(T element, T operand) noexcept {
    return static_cast<T>(element + operand);
  }
};
struct Replace {
  template <class T>
  static T of(T /*element*/, T operand) noexcept {
    return operand;
  }
};

template <class T, class Combine>
void combine_one(std::byte* element, const std::byte* operand, std::byte* before) {
  const T old = read<T>(element);
  const T made = Combine::of(old, read<T>(operand));
  std::memcpy(element, &made, sizeof made);
  if (before != nullptr) std::memcpy(before, &old, sizeof old);
}
template <class T>
void fetch_one(std::byte* element, const std::byte* /*operand*/, std::byte* before) {
  if (before != nullptr) std::memcpy(before, element, sizeof(T));
}

ApplyToOne fetch_of(std::size_t bytes) noexcept {
  if (bytes == 8) return &fetch_one<std::uint64_t>;
  return bytes == 4 ? &fetch_one<std::uint32_t> : nullptr;
}
ApplyToOne replace_of(std::size_t bytes) noexcept {
  if (bytes == 8) return &combine_one<std::uint64_t, Replace>;
  return bytes == 4 ? &combine_one<std::uint32_t, Replace> : nullptr;
}
// Integers wrap.
ApplyToOne sum_of(ElementType type) noexcept {
  switch (type) {
    case ElementType::int32:
    case ElementType::uint32:
      return &combine_one<std::uint32_t, Sum>;
    case ElementType::int64:
    case ElementType::uint64:
      return &combine_one<std::uint64_t, Sum>;
    case ElementType::float32:
      return &combine_one<float, Sum>;
    case ElementType::float64:
      return &combine_one<double, Sum>;
    default:
      return nullptr;
  }
}

ApplyToOne one_of(const Accumulation& all) noexcept {
  if (all.op() == ReductionOp::no_op) return fetch_of(all.bytes());
  if (all.op() == ReductionOp::replace) return replace_of(all.bytes());
  const std::optional<ElementType> type = all.element_type();
  return all.op() == ReductionOp::sum && type ? sum_of(*type) : nullptr;
}

}  // namespace

namespace known {

Table<KnownType> types;
Table<KnownAccumulation> accumulations;

std::size_t bytes_slowly(Word type) noexcept {
  const FoundElements elements = elements_of(type);
  const bool apt = elements && !elements->packed && !elements->gaps;
  if (!apt || !mpi::is_predefined({type})) return 0;
  const std::lock_guard lock(filling);
  KnownType& place = types[place_of(type)];
  if (place.handle.load(std::memory_order_relaxed) == 0) {
    place.bytes = elements->bytes;
    place.handle.store(type, std::memory_order_release);  // pairs with known_bytes()
  }
  return elements->bytes;
}

const KnownAccumulation* accumulation_slowly(Word type, Word op) {
  if (known_bytes(type) == 0) return nullptr;
  const std::lock_guard lock(filling);
  KnownAccumulation& place = accumulations[place_of(type, op)];
  if (place.type.load(std::memory_order_relaxed) != 0) {
    return place.type.load(std::memory_order_relaxed) == type && place.op == op ? &place : nullptr;
  }
  auto all = std::make_unique<const Accumulation>(type, op);
  if (!all->usable()) return nullptr;
  place.op = op;
  place.one = one_of(*all);
  place.all = all.release();
  place.type.store(type, std::memory_order_release);  // pairs with known_accumulation()
  return &place;
}

}  // namespace known
}  // namespace ropewalk::preload::onesided
