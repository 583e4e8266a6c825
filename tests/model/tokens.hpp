// What ranks pass in the scenarios, so that a payload tells its rank, its call and its place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/model.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::model {

using Element = std::uint64_t;

// What a rank passes in a call: no two are alike.
inline Element token(int rank, int call, std::size_t index = 0) {
  return static_cast<Element>(call) * 1000000 + static_cast<Element>(rank + 1) * 10000 + index;
}
inline Element sum_of_tokens(int ranks, int call, std::size_t index = 0) {
  Element sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += token(rank, call, index);
  return sum;
}

inline void expect(Element found, Element expected) {
  if (found != expected) fail("gets the payload of another call or rank");
}

// An array in the arena of this rank. Its accesses are seen, as those of a program would be.
class Shared {
 public:
  explicit Shared(std::size_t count)
      : data_(static_cast<Element*>(Arena::process().allocate(count * sizeof(Element)))),
        count_(count) {}
  Element* data() const { return data_; }
  void fill(int rank, int call) {
    write(data_, count_ * sizeof(Element));
    for (std::size_t index = 0; index < count_; ++index) data_[index] = token(rank, call, index);
  }
  // Elements `begin` to `end` are what `rank` filled in.
  void expect_filled(std::size_t begin, std::size_t end, int rank, int call) const {
    read(data_ + begin, (end - begin) * sizeof(Element));
    for (std::size_t index = begin; index < end; ++index) {
      expect(data_[index], token(rank, call, index - begin));
    }
  }
  void expect_sums(int ranks, int call) const {
    read(data_, count_ * sizeof(Element));
    for (std::size_t index = 0; index < count_; ++index) {
      expect(data_[index], sum_of_tokens(ranks, call, index));
    }
  }

 private:
  Element* data_;
  std::size_t count_;
};

}  // namespace ropewalk::model
