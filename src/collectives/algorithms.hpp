// The collectives, one file each. All ranks of the engine's team call the same one; in place has
// been resolved (send == receive), arguments have been checked, and the team has two ranks or more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "collectives/blocks.hpp"
#include "collectives/engine.hpp"
#include "collectives/pattern.hpp"

namespace ropewalk::collectives {

void barrier(Engine&);

// reduction.cc: root -1 means that every rank gets the result.
void reduce(Engine&, const void* send, void* receive, std::size_t count, const Operation&,
            int root);
void scan(Engine&, const void* send, void* receive, std::size_t count, const Operation&,
          bool exclusive);
void reduce_scatter(Engine&, const void* send, void* receive, const std::size_t* counts,
                    const Operation&);

void broadcast(Engine&, void* data, std::size_t bytes, int root);

// `send` is this rank's block; where it already lies in `receive` it is not copied.
void allgather(Engine&, const void* send, void* receive, const Blocks&);
// Blocks are the root's; others pass null.
void gather(Engine&, const void* send, std::size_t bytes, void* receive, const Blocks*, int root);
// receive may be null at the root: its block stays where it is.
void scatter(Engine&, const void* send, const Blocks*, void* receive, std::size_t bytes, int root);
void alltoall(Engine&, const void* send, void* receive, std::size_t bytes_each);
void alltoallv(Engine&, const void* send, const Blocks& sends, void* receive,
               const Blocks& receives);
// A part of its own type for each rank. In place, `sends` are the receives.
void alltoallw(Engine&, std::span<const TypedPart> sends, std::span<const TypedPart> receives,
               bool in_place);

// A call over nodes, of which the engine of each node does a part. The call itself holds the
// scratch memory to its end, and has messages under way.
struct CallOverNodes {
  std::span<const int> ranks;          // of the communicator, by their rank in the team
  std::function<void()> advance = {};  // the messages; called between two copies

  int rank_of(int place) const { return ranks.empty() ? place : ranks[index(place)]; }
  void go_on() const {
    if (advance) advance();
  }

 private:
  static std::size_t index(int place) { return static_cast<std::size_t>(place); }
};
void alltoallw(Engine&, std::span<const TypedPart> sends, std::span<const TypedPart> receives,
               bool in_place, const CallOverNodes&);

// Who sends whom a block in a neighbourhood collective, as one rank sees it. A rank may be a
// neighbour several times, and its own.
struct IncomingBlock {
  int source;         // -1: there is no such neighbour
  std::size_t block;  // among the blocks that the source sends
};
struct NeighbourRanks {
  std::span<const int> destinations;        // of each block sent; -1: nobody
  std::span<const IncomingBlock> incoming;  // each block received
};
// A rank has at most most_directions of either.
void exchange_neighbours(Engine&, const NeighbourRanks&, const void* send, const Blocks& sends,
                         void* receive, const Blocks& receives);
// The same for parts of any type.
void exchange_neighbours(Engine&, const NeighbourRanks&, std::span<const TypedPart> sends,
                         std::span<const TypedPart> receives);
constexpr std::size_t most_directions = 16;
// The part of a call over nodes. `ranks` are those of the team.
void exchange_neighbours(Engine&, const NeighbourRanks& ranks, const void* send,
                         const Blocks& sends, void* receive, const Blocks& receives,
                         const CallOverNodes&);
void exchange_neighbours(Engine&, const NeighbourRanks& ranks, std::span<const TypedPart> sends,
                         std::span<const TypedPart> receives, const CallOverNodes&);

// two_level.cc: reductions among mapped buffers, first inside each cache domain.
bool has_levels(Engine&, std::size_t bytes, const Operation&);
void two_level_reduce(Engine&, const std::vector<Shown>& shown, std::size_t count, const Operation&,
                      int root);

// cma.cc: reductions and broadcasts with private buffers that the kernel reads and writes. Returns
// true when every buffer that takes part is mapped or can be reached by CMA.
bool reaches_all(const std::vector<Shown>& shown, int root);
void cma_reduce(Engine&, const std::vector<Shown>& shown, const void* send, void* receive,
                std::size_t count, const Operation&, int root);
// Combines elements `first` to first + count - 1 of the first `ranks` ranks; ends the call.
void cma_combine(Engine&, const std::vector<Shown>& shown, const void* send, int ranks,
                 std::size_t first, void* receive, std::size_t count, const Operation&);
bool read_by_cma(const std::vector<Shown>& shown);  // some send buffer is
void cma_broadcast(Engine&, const std::vector<Shown>& shown, void* data, std::size_t bytes,
                   int root);

// staged.cc: reductions and broadcasts of private buffers, chunk by chunk through the arenas.
void staged_reduce(Engine&, const std::vector<Shown>& shown, const void* send, void* receive,
                   std::size_t count, const Operation&, int root);
void staged_broadcast(Engine&, void* data, std::size_t bytes, int root);

}  // namespace ropewalk::collectives
