// The phase between nodes of a large reduction: one piece of the vector, combined over the ranks
// that own it, one a node. One algorithm, one file; choice.cc chooses.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "collectives/engine.hpp"
#include "collectives/nodes/lanes.hpp"
#include "collectives/nodes/nodes.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk::collectives::nodes {

// How the pieces of one slice travel. Alike on all its owners.
struct Route {
  std::span<const int> owners;  // ranks of `comm`, by node
  int node = 0;                 // this rank's
  int slice = 0;
  int root_node = -1;  // that alone gets the result; -1: all nodes
  mpi::Comm comm;
};

// A state machine: after start(), advance() is called until it says true. Several may be under way
// on one rank, on tags of their own; owners start the pieces of a slice in the same order.
// Where one is destroyed while under way, its receives are cancelled.
class Exchange {
 public:
  Exchange() = default;
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // `input`: this node's part of the piece, `count` elements. `data`, which may be the same: where
  // the result goes if this rank gets one, elsewhere anything. Both stay until the end.
  virtual void start(const Route&, int tag, const std::byte* input, std::byte* data,
                     std::size_t count) = 0;
  virtual bool advance() = 0;
};

struct Making {
  Nodes& nodes;
  const Operation& operation;
  std::size_t most_elements;  // of a piece
  Lanes* lanes = nullptr;     // that share the arithmetic; null: nobody does
  int slot = 0;               // of this exchange in them
};
std::unique_ptr<Exchange> make_ring(const Making&);
std::unique_ptr<Exchange> make_halving(const Making&);
std::unique_ptr<Exchange> make_by_mpi(const Making&);
std::unique_ptr<Exchange> make_chain(const Making&);  // to a root

// ---- the choice, from what all ranks share

// `whole` is the MPI's own call on the whole communicator, `flat` is doubling among all ranks,
// `doubling` goes through one rank a node;
// the others take a vector in pieces.
enum class Algorithm { whole, flat, doubling, halving, ring, mpi };
struct Choice {
  Algorithm algorithm;
  int slices;               // the vector is dealt to so many owners a node
  std::size_t piece_bytes;  // at most, of a slice
};
// The table of docs/explanation/nodes.md, and what ROPEWALK_ALLREDUCE says against it: the number
// of an Algorithm, -1 for nothing. It is for allreduce alone.
struct Asked {
  std::size_t bytes;
  bool rooted = false;  // one rank gets the result
  int wish = -1;
  std::size_t longest_message;  // of the ring, in bytes
};
// What this rank would take for it, from the MPI and its settings; the greatest of all ranks holds.
std::size_t longest_message();
Choice choose(const Layout&, const Asked&);
int most_slices(const Layout&);  // of any choice
int wished_algorithm();          // ROPEWALK_ALLREDUCE

// ROPEWALK_MOVEMENTS: whether the nodes serve all sizes, as tests and benches ask.
bool wishes_all_sizes();
std::unique_ptr<Exchange> make(Algorithm, const Making&, bool rooted);
// Whether an exchange of it never blocks, so that several threads may each have some.
constexpr bool is_nonblocking(Algorithm algorithm, bool rooted) {
  return rooted || algorithm == Algorithm::ring;
}

// a op b into `result`, which may be one of them.
inline void combine_two(const Operation& operation, void* result, const void* a, const void* b,
                        std::size_t count) {
  const void* inputs[] = {a, b};
  operation.combine(std::span(&result, 1), inputs, count, kernels::Stores::temporal);
}

// The arithmetic of an exchange: at once, or by the lanes of this rank. One combination at a time.
class Arithmetic {
 public:
  explicit Arithmetic(const Making& making) : lanes_(making.lanes), slot_(making.slot) {}
  void start(const Combination& what) {
    if (lanes_ != nullptr) return lanes_->start(slot_, what);
    combine_two(*what.operation, what.result, what.a, what.b, what.count);
  }
  bool finished() const { return lanes_ == nullptr || lanes_->finished(slot_); }

 private:
  Lanes* lanes_;
  int slot_;
};

}  // namespace ropewalk::collectives::nodes
