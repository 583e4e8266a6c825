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

template <class T>
void copy_few(std::byte* to, const std::byte* from, std::size_t count) noexcept {
  if (count == 1) {
    std::memcpy(to, from, sizeof(T));
  } else {
    std::memcpy(to, from, count * sizeof(T));
  }
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
void combine_few(std::byte* elements, const std::byte* operands, std::byte* before,
                 std::size_t count) {
  if (before != nullptr) copy_few<T>(before, elements, count);
  for (std::size_t i = 0; i < count; ++i, elements += sizeof(T), operands += sizeof(T)) {
    const T made = Combine::of(read<T>(elements), read<T>(operands));
    std::memcpy(elements, &made, sizeof made);
  }
}
template <class T>
void fetch_few(std::byte* elements, const std::byte* /*operands*/, std::byte* before,
               std::size_t count) {
  if (before != nullptr) copy_few<T>(before, elements, count);
}

ApplyToFew fetch_of(std::size_t bytes) noexcept {
  if (bytes == 8) return &fetch_few<std::uint64_t>;
  return bytes == 4 ? &fetch_few<std::uint32_t> : nullptr;
}
ApplyToFew replace_of(std::size_t bytes) noexcept {
  if (bytes == 8) return &combine_few<std::uint64_t, Replace>;
  return bytes == 4 ? &combine_few<std::uint32_t, Replace> : nullptr;
}
// Integers wrap.
ApplyToFew sum_of(ElementType type) noexcept {
  switch (type) {
    case ElementType::int32:
    case ElementType::uint32:
      return &combine_few<std::uint32_t, Sum>;
    case ElementType::int64:
    case ElementType::uint64:
      return &combine_few<std::uint64_t, Sum>;
    case ElementType::float32:
      return &combine_few<float, Sum>;
    case ElementType::float64:
      return &combine_few<double, Sum>;
    default:
      return nullptr;
  }
}

ApplyToFew few_of(const Accumulation& all) noexcept {
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
  place.few = few_of(*all);
  place.kernel = all->kernel();
  place.all = all.release();
  place.type.store(type, std::memory_order_release);  // pairs with known_accumulation()
  return &place;
}

}  // namespace known
}  // namespace ropewalk::preload::onesided
