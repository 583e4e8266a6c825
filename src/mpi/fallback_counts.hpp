// What the fallbacks share: how a count becomes the arguments of a call with int counts.
#pragma once

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "mpi/datatypes.hpp"
#include "mpi/large_count.hpp"
#include "mpi/library.hpp"

namespace ropewalk::mpi::fallback {

// Counts up to this go to functions with int counts. Tests lower it, so that a few elements take
// the path that is meant for gigabytes.
inline std::atomic<std::size_t> int_limit{INT_MAX};
inline bool fits(std::size_t count) noexcept {
  return count <= int_limit.load(std::memory_order_relaxed);
}
inline std::size_t piece() noexcept {  // elements of one call where a reduction is cut
  return std::min(std::size_t{1} << 30, int_limit.load(std::memory_order_relaxed));
}

// (count, type) or (1, a type of that many): the same signature in an int.
class Counted {
 public:
  Counted(std::size_t count, Datatype type) : count_(static_cast<int>(count)), type_(type.value) {
    if (fits(count)) return;
    count_ = 1;
    type_ = large_.emplace(count, type, piece()).word();
  }
  int count() const noexcept { return count_; }
  Word type() const noexcept { return type_; }

 private:
  std::optional<LargeType> large_;
  int count_;
  Word type_;
};

inline Count c(std::size_t count) noexcept { return static_cast<Count>(count); }

inline const std::byte* at(const void* data, std::size_t elements, std::int64_t extent) noexcept {
  return static_cast<const std::byte*>(data) + static_cast<std::int64_t>(elements) * extent;
}
inline std::byte* at(void* data, std::size_t elements, std::int64_t extent) noexcept {
  return static_cast<std::byte*>(data) + static_cast<std::int64_t>(elements) * extent;
}

// What MPI uses until the call is over. Where a wait has given up, MPI may still: it is never
// freed.
template <class Value>
class Kept {
 public:
  explicit Kept(std::vector<Value> values)
      : values_(std::make_unique<std::vector<Value>>(std::move(values))) {}
  ~Kept() {
    if (receives_left()) (void)values_.release();
  }
  Kept(Kept&&) noexcept = default;
  Kept& operator=(Kept&&) = delete;
  Value* data() const noexcept { return values_->data(); }
  std::size_t size() const noexcept { return values_->size(); }

 private:
  std::unique_ptr<std::vector<Value>> values_;
};

template <class Number>
Kept<Number> numbers(const std::size_t* values, std::size_t n) {
  if (values == nullptr) return Kept<Number>({});  // not significant on this rank
  return Kept<Number>({values, values + n});
}

}  // namespace ropewalk::mpi::fallback
