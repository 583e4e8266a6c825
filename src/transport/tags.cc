#include "transport/tags.hpp"

#include <algorithm>

namespace ropewalk::transport {

int TagSpace::next() const noexcept {
  const std::lock_guard lock(mutex_);
  return next_;
}

int TagSpace::find(int from, int count) const noexcept {
  const std::lock_guard lock(mutex_);
  int at = std::max(from, first_);
  for (const auto& [begin, end] : used_) {
    if (begin - at >= count) break;
    at = std::max(at, end);
  }
  return end_ - at >= count ? at : end_;
}

void TagSpace::take(int first, int count) {
  const std::lock_guard lock(mutex_);
  used_.emplace(first, first + count);
  next_ = first + count;
}

void TagSpace::give_back(int first) noexcept {
  const std::lock_guard lock(mutex_);
  used_.erase(first);
}

}  // namespace ropewalk::transport
