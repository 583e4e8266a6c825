// Counts and displacements of 64 bits as ints, for an MPI that has no other functions.
#pragma once

#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

#include "functions.hpp"

namespace ropewalk::preload {

class Ints {
 public:
  // Null pointers stay null: an argument that is not significant on this rank.
  Ints(std::initializer_list<std::span<const Count>> arrays) {
    for (const std::span<const Count> array : arrays) {
      std::vector<int>& made = arrays_.emplace_back();
      null_.push_back(array.data() == nullptr);
      for (const Count number : array) {
        fit_ = fit_ && number >= std::numeric_limits<int>::min() &&
               number <= std::numeric_limits<int>::max();
        made.push_back(static_cast<int>(number));
      }
    }
  }
  bool fit() const noexcept { return fit_; }
  const int* operator[](std::size_t array) const {
    return null_[array] ? nullptr : arrays_[array].data();
  }

 private:
  bool fit_ = true;
  std::vector<std::vector<int>> arrays_;
  std::vector<bool> null_;
};

inline bool fits_int(Count count) {
  return count >= std::numeric_limits<int>::min() && count <= std::numeric_limits<int>::max();
}

}  // namespace ropewalk::preload
