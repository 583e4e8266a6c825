// The phase between nodes of a large reduction: one chunk of a slice, combined over the leaders of
// that slice, one a node. One algorithm, one file; choice.cc chooses.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "collectives/engine.hpp"
#include "collectives/nodes/nodes.hpp"
#include "collectives/nodes/reduction_threads.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk::collectives::nodes {

// A route says how the chunks of one slice travel. It is the same on all leaders of the slice.
struct Route {
  std::span<const int> leaders;  // ranks of `comm`, by node
  int node = 0;                  // this rank's
  int slice = 0;
  int root_node = -1;  // the only node that gets the result; -1: all get it
  mpi::Comm comm;
};

// A state machine: after start(), advance() is called until it says true. Several may be under way
// on one rank, on tags of their own; leaders start the chunks of a slice in the same order.
// Where one is destroyed while under way, its receives are cancelled.
class ChunkExchange {
 public:
  ChunkExchange() = default;
  virtual ~ChunkExchange() = default;
  ChunkExchange(const ChunkExchange&) = delete;
  ChunkExchange& operator=(const ChunkExchange&) = delete;

  // `input` is this node's part of the chunk, `count` elements. The result goes to `data`, which
  // may be the same memory, if this rank gets one. Both stay until the end.
  virtual void start(const Route&, int tag, const std::byte* input, std::byte* data,
                     std::size_t count) = 0;
  virtual bool advance() = 0;
};

struct ExchangeSetup {
  Nodes& nodes;
  const Operation& operation;
  std::size_t most_elements;            // of a chunk
  ReductionThreads* threads = nullptr;  // that share the arithmetic; null: the caller alone
  int slot = 0;                         // of this exchange in them
};
std::unique_ptr<ChunkExchange> make_ring(const ExchangeSetup&);
std::unique_ptr<ChunkExchange> make_halving(const ExchangeSetup&);
std::unique_ptr<ChunkExchange> make_by_mpi(const ExchangeSetup&);
std::unique_ptr<ChunkExchange> make_chain(const ExchangeSetup&);  // to a root

// a op b into `result`, which may be one of them.
inline void combine_two(const Operation& operation, void* result, const void* a, const void* b,
                        std::size_t count) {
  const void* inputs[] = {a, b};
  operation.combine(std::span(&result, 1), inputs, count, kernels::Stores::temporal);
}

// The arithmetic of an exchange is done at once, or by the threads of this rank. There is one
// combination at a time.
class ChunkArithmetic {
 public:
  explicit ChunkArithmetic(const ExchangeSetup& setup)
      : threads_(setup.threads), slot_(setup.slot) {}
  void start(const Combination& what) {
    if (threads_ != nullptr) return threads_->start(slot_, what);
    combine_two(*what.operation, what.result, what.a, what.b, what.count);
  }
  bool finished() const { return threads_ == nullptr || threads_->finished(slot_); }

 private:
  ReductionThreads* threads_;
  int slot_;
};

}  // namespace ropewalk::collectives::nodes
