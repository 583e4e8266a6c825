// Exchange of elements along lists of neighbours: ghosts of unstructured meshes, graphs, and the
// vectors of sparse matrices.
//
//   ropewalk::IrregularHalo halo(world, ropewalk::neighbors_by_rows(world, rows, ghosts),
//                                rows + ghosts.size(), sizeof(double));
//   halo.exchange(x);  // the ghosts behind the rows of x have the values of their owners
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ropewalk/communicator.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/export.hpp"
#include "ropewalk/types.hpp"

namespace ropewalk {

// What a rank shares with another rank, or with itself. Elements are told by their index in this
// rank's array.
struct Neighbor {
  int rank = 0;
  std::vector<std::int64_t> send;     // what goes there, in the order in which it travels
  std::vector<std::int64_t> receive;  // what comes from there, in the order that rank sends it
};

// Collective. Returns the neighbors where every rank owns `rows` consecutive global numbers, in the
// order of ranks, and needs the elements with the global numbers `ghosts`. Rows have the indices 0
// to rows - 1, ghost i has the index rows + i. Throws Error(argument) on every rank where a ghost
// of one is listed twice, is its own row, or is no row of any rank.
RW_EXPORT std::vector<Neighbor> neighbors_by_rows(Communicator, std::int64_t rows,
                                                  std::span<const std::int64_t> ghosts);

// Construction and destruction are collective over the communicator, which must outlive this
// object. Where two ranks exchange anything, each lists the other, once. One thread at a time makes
// calls. A call is collective among neighbors: all of them make the same calls in the same order.
//
// Ranks of a node gather elements straight into each other's memory, so that an element is copied
// twice and no message is sent. What goes to other nodes, or between ranks that cannot map each
// other's memory, is one message for each neighbor, and leaves first.
//
// Errors: Error(argument) on every rank where an index is outside of the array, an element is
// received twice, a rank is listed twice or by one side only, or two ranks disagree on how many
// elements go from one to the other; Error(peer_dead) when a rank has died.
class RW_EXPORT IrregularHalo {
 public:
  // The array of this rank has `elements` of `element_bytes` each; these are the same on all ranks.
  IrregularHalo(Communicator, const std::vector<Neighbor>&, std::size_t elements,
                std::size_t element_bytes);
  ~IrregularHalo();
  IrregularHalo(IrregularHalo&&) noexcept;
  IrregularHalo& operator=(IrregularHalo&&) noexcept;

  std::size_t elements() const noexcept;
  std::size_t element_bytes() const noexcept;
  // Bytes that an exchange sends to ranks of this node, and to others.
  std::size_t near_bytes() const noexcept;
  std::size_t far_bytes() const noexcept;

  // Brings the values of `send` elements to the `receive` elements of the neighbors. exchange() is
  // start() and wait(). When start() returns, the elements that are sent may be changed again;
  // those that are received belong to the exchange until test() has returned true or wait() has
  // returned.
  void exchange(void* array);
  void start(void* array);
  bool test();
  void wait();

  // The other way round: the values of `receive` elements go back to the neighbors that own them,
  // where the `send` elements become (element op value), in the order in which the neighbors are
  // listed. An element consists of numbers of the type, one or several. It waits.
  void combine(void* array, ElementType, ReductionOp);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ropewalk
