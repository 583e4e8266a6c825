// Memory of each rank that the other ranks of its node read and write without its help: one-sided
// communication, as loads, stores and atomic operations on mapped memory.
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
// put() and get() are complete when they return: the caller may use its buffer, and later calls of
// this rank come after. Another rank may read what was put once it has seen a signal() or a fence()
// that followed. Bytes that one rank writes while another reads or writes them are undefined, but
// for the atomic operations: these are atomic for each element, among each other.
//
// Errors: Error(unsupported) on every rank where ranks cannot map each other's memory, as on
// several nodes; Error(argument) for a range outside of the window, an offset that is no multiple
// of the element's size, and a type or an operation that is not atomic; Error(peer_dead) when a
// rank has died.
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
  // Returns the memory of any rank as it is mapped here, for loads and stores of the caller's own.
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

  // Raises a counter of a rank, after all that this rank has put there before.
  void signal(int rank, int index = 0, std::uint64_t by = 1);
  // The first returns how far a counter of this rank was raised, the second waits until it is at
  // least `value`.
  std::uint64_t signals(int index = 0) const;
  void wait_signal(std::uint64_t value, int index = 0);

  // All ranks have come here, and what they have put before is there.
  void fence();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ropewalk
