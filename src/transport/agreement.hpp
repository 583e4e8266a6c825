// The agreement: the facts that the ranks of a new endpoint set exchange before anything is made,
// and the conclusions from them. Every rank judges the same facts, so either all go on or all get
// the same error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/endpoint.hpp"

namespace ropewalk::transport {

// Sent byte by byte: no padding, no pointers.
struct EndpointFacts {
  std::uint64_t split_bytes = 0;
  std::uint64_t settings = 0;    // their fingerprint
  std::int64_t piece_bytes = 0;  // ROPEWALK_PIECE_BYTES: 0 when off, -1 when it is no size
  std::uint64_t node = 0;        // hash of the machine's identity: its ranks share cores
  std::uint64_t memory = 0;      // hash of node::node_name(): equal ranks may share memory
  std::uint64_t cores_hash = 0;  // of the cores this rank may run on
  std::int32_t cores = 1;
  std::int32_t lanes = 0;         // as asked for
  std::int32_t wish = 0;          // ROPEWALK_LANES: 0 when automatic, -1 when it is not a number
  std::int32_t threads = 0;       // 0 or 1
  std::int32_t thread_level = 0;  // mpi::ThreadLevel
  std::int32_t tuned_lanes = 0;   // transport.lanes of the profile; 0: it says nothing
  char wish_text[24] = "";        // of what cannot be understood, cut to fit
  char piece_text[24] = "";       // the same
};

struct Agreement {
  int lanes = 1;
  std::size_t split_bytes = 0;
  std::size_t piece_bytes = 0;  // the least that any rank wants; 0: messages stay whole
  int neighbours = 1;           // ranks that share this rank's cores, itself included
  int position = 0;             // of this rank among them
  int beside = 1;               // ranks on this rank's machine, itself included
  std::vector<int> nodes;       // of each rank: ranks with equal numbers may share memory
};

EndpointFacts local_facts(const EndpointOptions& options, std::span<const int> cores);

// Returns the judgement of rank `rank` over the facts of all. It is a pure function, and throws the
// same Error whatever `rank` is.
Agreement judge(std::span<const EndpointFacts> facts, int rank);

// Returns the core of a lane, or all cores where there are too few to give each lane of each rank
// its own (there the kernel balances better). Lanes are counted from the end of the list: compute
// threads are usually placed from its beginning.
std::vector<int> cores_of_lane(std::span<const int> cores, int lane, int lanes, int position,
                               int neighbours);

// Returns the same cores, with those of `last` at the end, else in the same order: lanes take the
// last, which should be near the adapter.
std::vector<int> with_last(std::span<const int> cores, std::span<const int> last);

// Collective. Exchanges the local facts and judges them.
Agreement agree(mpi::Comm comm, const EndpointFacts& own);

}  // namespace ropewalk::transport
