// Exchange of parts of arrays between all ranks: transposes of distributed arrays, and other
// changes of how an array lies over the ranks.
//
//   ropewalk::SubarrayExchange transpose(world, sizeof(double), rows, columns);
//   transpose.exchange(a);  // what belongs here of all ranks' rows lies in transpose.data()
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "ropewalk/communicator.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/export.hpp"

namespace ropewalk {

// Elements of an array at equal distances in each dimension. Dimensions may be listed in any order:
// it is the order in which the elements travel, the last dimension fastest.
struct Subarray {
  std::size_t offset = 0;            // bytes from the beginning of the array to the first element
  std::vector<std::size_t> extents;  // elements in each dimension; empty: no element at all
  std::vector<std::size_t> strides;  // bytes from an element to the next one in each dimension
};

// An array of this rank, and what of it goes to each rank or comes from there.
struct ArrayParts {
  std::size_t bytes = 0;        // of the array
  std::vector<Subarray> parts;  // one for each rank, this one included
};

// Construction and destruction are collective over the communicator, which must outlive this
// object; so is each exchange. One thread at a time makes calls.
//
// What a rank sends to another has the same extents as what the other receives from it; offsets and
// strides are each rank's own. Ranks of a node copy from the sender's array straight into the array
// that receives, which is memory of this object: nothing is packed. What goes to other nodes, or
// between ranks that cannot map each other's memory, is one packed message for each pair.
//
// Errors: Error(argument) on every rank where a part lies outside of its array, or what two ranks
// say of a part differs; Error(peer_dead) when a rank has died.
class RW_EXPORT SubarrayExchange {
 public:
  static constexpr std::size_t max_dimensions = 6;

  // `element_bytes` is the same on all ranks. Parts that are received must not overlap.
  SubarrayExchange(Communicator, std::size_t element_bytes, const ArrayParts& sent,
                   const ArrayParts& received);
  ~SubarrayExchange();
  SubarrayExchange(SubarrayExchange&&) noexcept;
  SubarrayExchange& operator=(SubarrayExchange&&) noexcept;

  // The array that receives. It is zero at first; between exchanges the caller may change it.
  std::byte* data() const noexcept;
  std::size_t bytes() const noexcept;
  // Bytes that an exchange sends to other ranks of this node, and to other nodes.
  std::size_t near_bytes() const noexcept;
  std::size_t far_bytes() const noexcept;

  // Sends the parts of `array`, which may be changed again when this returns, and receives those of
  // the others into data(). `array` may be the data() of another exchange, but not of this one.
  void exchange(const void* array);

  // Collective, after the last exchange: frees what the ranks have together, so that destruction is
  // no longer collective. The array stays.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ropewalk
