// Memory of each rank that the other ranks read and write without its help: one-sided
// communication. Inside a node it is loads, stores and atomic operations on mapped memory; on other
// nodes a thread of the rank answers.
//
//   ropewalk::Window window(ropewalk::Communicator::world(), 1 << 20);
//   window.put(data, bytes, 1, 0);   // into the memory of rank 1, at its beginning
//   window.signal(1);                // rank 1 may read it once wait_signal() has returned
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ropewalk/communicator.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/export.hpp"
#include "ropewalk/types.hpp"

namespace ropewalk {

struct WindowOptions {
  int signals = 8;  // counters of each rank that others raise; the same on all ranks
};

// Offsets and lengths are in bytes, ranks are those of the communicator. Construction, fence() and
// destruction are collective. One thread at a time makes calls.
//
// put() and get() are complete for the caller when they return: it may use its buffer, and later
// calls of this rank to that rank come after. Another rank may read what was put once it has seen a
// signal(), a fence() or a message that followed a flush(). Bytes that one rank writes while
// another reads or writes them are undefined, but for the atomic operations: these are atomic for
// each element, among each other, whatever nodes they come from.
//
// Where ranks are on several nodes, each has a thread that answers the other nodes. It polls MPI:
// for 10 ms after each request without a pause, then at intervals that grow to 0.5 ms. Up to 64
// requests without an answer, such as puts, are under way to a rank.
//
// Errors: Error(unsupported) on every rank where ranks of a node cannot map each other's memory,
// and on several nodes where MPI was started without MPI_THREAD_MULTIPLE; Error(argument) for a
// range outside of the window, an offset that is no multiple of the element's size, and a type or
// an operation that is not atomic; Error(peer_dead) when a rank has died, or has left a window over
// several nodes because of an exception.
class RW_EXPORT Window {
 public:
  // `bytes` of this rank, which may differ from those of others. They are zero.
  Window(Communicator, std::size_t bytes, const WindowOptions& = {});
  ~Window();
  Window(Window&&) noexcept;
  Window& operator=(Window&&) noexcept;

  int rank() const noexcept;
  int size() const noexcept;
  std::byte* data() const noexcept;  // of this rank
  std::size_t bytes() const noexcept;
  bool is_near(int rank) const;  // on this node
  // Returns the memory of a rank of this node as it is mapped here, for loads and stores of the
  // caller's own. Error(unsupported) for a rank of another node.
  std::byte* data(int rank) const;
  std::size_t bytes(int rank) const;

  void put(const void* from, std::size_t bytes, int to, std::size_t offset);
  void get(void* into, std::size_t bytes, int from, std::size_t offset) const;

  // Elements of at most 8 bytes, with the operations that MPI allows for their type.
  // `count` elements there become (element op operand).
  void accumulate(const void* operands, std::size_t count, ElementType, ReductionOp, int to,
                  std::size_t offset);
  // One element; `before` gets what it was. With no_op it is an atomic load, with replace an
  // exchange.
  void fetch_and_op(const void* operand, void* before, ElementType, ReductionOp, int rank,
                    std::size_t offset);
  // One element becomes `desired` where its bytes are those of `expected`; `before` gets what it
  // was.
  void compare_and_swap(const void* expected, const void* desired, void* before, ElementType,
                        int rank, std::size_t offset);

  // Returns when all that this rank has put and accumulated is there, on whatever node.
  void flush();

  // Raises a counter of a rank, after all that this rank has put anywhere before.
  void signal(int rank, int index = 0, std::uint64_t by = 1);
  // The first returns how far a counter of this rank was raised, the second waits until it is at
  // least `value`.
  std::uint64_t signals(int index = 0) const;
  void wait_signal(std::uint64_t value, int index = 0);
  // For programs that ask signals() again and again: moves messages of MPI on, as waits do, and
  // throws Error(peer_dead) where a rank has died.
  void look_around();

  // All ranks have come here, and what they have put before is there.
  void fence();

  // Collective over several nodes: this rank neither asks the others for anything any more, nor
  // answers them. What is mapped stays so. The destructor does it where the program has not.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ropewalk
