// The tags of messages that ropewalk itself sends over a set of endpoints, in ranges: one for each
// exchange that lives. Callers' own messages have the tags below (Message::tag).
#pragma once

#include <map>
#include <mutex>

namespace ropewalk::transport {

// Holds the ranges of [first, end) that are in use. Any thread may call it.
class TagSpace {
 public:
  TagSpace(int first, int end) noexcept : first_(first), end_(end), next_(first) {}

  int first() const noexcept { return first_; }
  int end() const noexcept { return end_; }
  int next() const noexcept;  // behind the range that was taken last
  // The first of `count` tags in a row from `from` on that are free; end() where there are none.
  int find(int from, int count) const noexcept;
  void take(int first, int count);
  void give_back(int first) noexcept;

 private:
  mutable std::mutex mutex_;
  int first_;
  int end_;
  int next_;
  std::map<int, int> used_;  // first to end of each range
};

}  // namespace ropewalk::transport
