// The buffers of this node's ranks in one call: each rank reads the others' send buffers and writes
// into their results, by mapped memory or by CMA.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/algorithms.hpp"
#include "collectives/nodes/call_memory.hpp"

namespace ropewalk::collectives::nodes {

// The place where others of the node write this rank's result: the receive buffer, or, where they
// cannot reach that, memory of the arena, from which the result is copied at the end.
class Landing {
 public:
  // `bytes` reach from the first to the last that is written. To be made after the claim of the
  // call's slot.
  Landing(Engine& engine, void* data, std::size_t bytes);
  void show(Shown& shown) const { shown.receive = reference_; }
  std::byte* data() const noexcept { return place_; }
  // Takes a part of the result, once nobody writes it any more.
  void take(std::size_t offset, std::size_t bytes) const;

 private:
  std::byte* data_;
  std::byte* place_;
  Reference reference_;
};

// Returns room for numbers that a rank shows the others in addition to its buffers: where its
// blocks lie, and how long they are. To be called after the claim of the call's slot; the room is
// kept until the end of the call.
std::size_t* show_table(Engine& engine, node::Slot& own, std::size_t numbers);
// Returns the numbers of the rank at a place, after the meeting.
const std::size_t* table_of(Engine& engine, int place);

// These are all buffers of the node, after the meeting at which each rank has shown its own.
class NodeBuffers {
 public:
  NodeBuffers(Engine& engine, const std::vector<Shown>& shown, const void* send, void* receive,
              std::size_t bytes)
      : engine_(engine),
        shown_(shown),
        send_(static_cast<const std::byte*>(send)),
        receive_(static_cast<std::byte*>(receive)),
        stores_(engine.stores(bytes)) {}

  // Reads from the send buffer at a place of the node.
  void read(int place, std::size_t offset, void* to, std::size_t bytes);
  // Says where they are seen here; null where they must be read.
  const std::byte* seen(int place, std::size_t offset, std::size_t bytes);
  // Into the receive buffer at a place; what lies there already is left alone.
  void write(int place, std::size_t offset, const void* from, std::size_t bytes);
  // Writes the same into the receive buffers of all ranks of the node, at the same offset.
  void write_all(std::size_t offset, const void* from, std::size_t bytes);

 private:
  Engine& engine_;
  const std::vector<Shown>& shown_;
  const std::byte* send_;
  std::byte* receive_;
  kernels::Stores stores_;
};

}  // namespace ropewalk::collectives::nodes
