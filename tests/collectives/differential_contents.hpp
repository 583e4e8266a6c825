// What lies in a buffer of the differential test: the values that go in, and what of a result is
// compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/differential_buffers.hpp"
#include "collectives/differential_case.hpp"

namespace ropewalk::test {

// A buffer of a call.
struct Region {
  std::size_t elements = 0;
  std::vector<Block> filled;
  bool used = true;                       // false: null is passed
  std::size_t undefined_from = SIZE_MAX;  // elements from here on are anybody's afterwards
};
inline Region whole(std::size_t elements) { return {elements, {{0, elements}}}; }
inline Region empty(std::size_t elements) { return {elements, {}}; }
inline Region unused() { return {0, {}, false}; }

// Of one rank's buffers in one case.
class Contents {
 public:
  Contents(const Differential& drawn, const TypeEntry& type, const OpEntry& op, const Pair& on)
      : drawn_(drawn),
        type_(type),
        op_(op),
        ranks_(static_cast<std::size_t>(on.size)),
        rank_(static_cast<std::size_t>(on.rank)) {}

  // Puts values into what is filled of the region; they suit the operation.
  void fill(std::byte* data, const Region& region) const;
  // Makes bytes of a result that nobody defines the same everywhere.
  void forget(std::byte* data, const Region& region) const;

 private:
  void put_value(std::byte* to, const Scalar& scalar, std::size_t index, bool second) const;
  void forget_padding(std::byte* element) const;

  const Differential& drawn_;
  const TypeEntry& type_;
  const OpEntry& op_;
  std::size_t ranks_;
  std::size_t rank_;
};

}  // namespace ropewalk::test
