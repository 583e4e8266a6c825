// The arguments of a movement, from MPI's to the collectives'.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "datatypes.hpp"

namespace ropewalk::preload {

// The elements of a side on which a rank takes no part; nobody reads them.
inline const collectives::Elements no_elements;

// One block of elements. usable() is false where MPI must judge the arguments.
class Side {
 public:
  template <class Number>
  Side(const void* data, Number count, Word type)
      : elements_(count < 0 ? FoundElements() : elements_of(type)),
        data_(data),
        count_(static_cast<std::size_t>(count)) {
    elements_.hold();
  }
  // The side of a rank that takes no part on it, or whose data are in place.
  explicit Side(const void* data = nullptr) : elements_(&no_elements), data_(data) {}
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  bool usable() const noexcept { return static_cast<bool>(elements_); }
  collectives::typed::TypedBuffer buffer() const { return {data_, count_, *elements_}; }

 private:
  FoundElements elements_;
  const void* data_;
  std::size_t count_ = 0;
};

// A block for each rank. MPI's displacements may be negative, ours begin at 0: the buffer's address
// is moved to its first block.
class Sides {
 public:
  template <class Number>
  Sides(const void* data, const Number* counts, const Number* displacements, Word type, int ranks)
      : elements_(counts == nullptr || displacements == nullptr ? FoundElements()
                                                                : elements_of(type)),
        usable_(static_cast<bool>(elements_)),
        data_(data) {
    if (!usable_) return;
    elements_.hold();
    const auto size = static_cast<std::size_t>(ranks);
    if (size > few) more_.resize(2 * size);
    counts_ = size > few ? more_.data() : few_.data();
    displacements_ = counts_ + size;
    fill(counts, displacements, size);
  }
  Sides()
      : elements_(&no_elements), usable_(true) {}  // of a rank that does not take part on this side
  Sides(const Sides&) = delete;
  Sides& operator=(const Sides&) = delete;

  bool usable() const noexcept { return usable_; }
  collectives::typed::TypedBuffers buffers() const {
    return {data_, counts_, displacements_, *elements_};
  }

 private:
  template <class Number>
  void fill(const Number* counts, const Number* displacements, std::size_t size) {
    std::int64_t first = 0;
    for (std::size_t rank = 0; rank < size; ++rank) {
      if (counts[rank] < 0) usable_ = false;
      if (counts[rank] > 0) first = std::min<std::int64_t>(first, displacements[rank]);
    }
    if (!usable_) return;
    if (first < 0) data_ = moved(first * elements_->extent);
    for (std::size_t rank = 0; rank < size; ++rank) {
      counts_[rank] = static_cast<std::size_t>(counts[rank]);
      // A block of nothing may lie anywhere.
      displacements_[rank] =
          counts[rank] > 0 ? static_cast<std::size_t>(displacements[rank] - first) : 0;
    }
  }
  const void* moved(std::int64_t bytes) const {
    return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(data_) +
                                         static_cast<std::uintptr_t>(bytes));
  }

  static constexpr std::size_t few = 32;
  FoundElements elements_;
  bool usable_;
  const void* data_ = nullptr;
  std::array<std::size_t, 2 * few> few_;  // not set: only what is used is written
  std::vector<std::size_t> more_;
  std::size_t* counts_ = nullptr;
  std::size_t* displacements_ = nullptr;
};

}  // namespace ropewalk::preload
