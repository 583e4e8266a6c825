// Why ropewalk takes the way it takes: the sizes it compares with, and what it decides in a
// situation that is described. Nothing here starts an MPI; `ropewalk explain` shows the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ropewalk/endpoint.hpp"
#include "ropewalk/export.hpp"

namespace ropewalk {

// A size, or number, at which ropewalk goes another way.
struct Threshold {
  std::string name;           // as in a profile: node.cma_bytes
  std::string unit;           // bytes or count
  std::uint64_t value = 0;    // in the situation
  std::string given_by;       // FILE:LINE of the profile; empty: it is the default
  std::string default_value;  // in words, where it depends on the situation
  std::uint64_t least = 0;    // what a profile may give
  std::uint64_t most = 0;
  std::string asked_by;  // collectives, or strategies of a halo
  std::string meaning;
  std::string origin;   // how the default was found
  std::string machine;  // where it was measured; empty: nowhere
};

// Ranks that call together.
struct Situation {
  int ranks = 2;  // on each node
  int nodes = 1;
  bool crowded = false;         // a node has more ranks than cores
  bool private_memory = false;  // buffers lie outside the arenas
  bool cma = true;              // the kernel lets ranks read each other's memory
  bool xpmem = false;           // every rank can attach private memory
  int domains = 1;              // cache domains of a node
  bool int_counts = false;      // the MPI has no calls of large counts (Open MPI up to 5)
};

// A way that a call can go.
struct Alternative {
  std::string path;    // name(Path), or a strategy of a halo
  std::string how;     // what is done there
  std::string detail;  // how much at a time, and by how many; empty: nothing to say
  bool possible = false;
  bool taken = false;
  std::string why;        // why it is taken, or why not
  std::string threshold;  // the name of the one that was asked; empty: none
  // One word for the way over several nodes, by which a profile names its cost: flat, ring, ... It
  // is empty on one node, where `path` is enough.
  std::string algorithm;
};

// A size at which another alternative is taken.
struct Change {
  std::uint64_t bytes = 0;
  std::string path;
  std::string how;
  std::string threshold;
};

struct Explanation {
  std::string path;
  std::string how;
  std::string detail;
  std::string why;
  std::vector<Alternative> alternatives;  // in the order in which they are asked
  std::vector<Threshold> thresholds;      // that were asked
  std::vector<Change> smaller;  // the largest smaller size that goes another way; none: no such
  std::vector<Change> larger;   // the smallest larger one
  std::vector<std::string> assumed;  // about ranks and machine, beyond what was asked
};

// Returns all thresholds. Throws Error(argument) where ROPEWALK_PROFILE cannot be understood, here
// and below.
RW_EXPORT std::vector<Threshold> thresholds(const Situation&);

// Why the profile of ROPEWALK_PROFILE is not used on this machine: how the machine that it names
// differs. Empty: it is used, or there is none.
RW_EXPORT std::string refused_profile();

// Returns the collectives that explain_collective() knows.
RW_EXPORT std::vector<std::string> explained_collectives();
// Returns that of these which a name means: itself, or a name of MPI such as bcast,
// reduce_scatter_block or MPI_Allreduce. The result is empty where it means none.
RW_EXPORT std::string explained_name(const std::string& collective);
// What a size is of, for such a collective: "the vector" or "a block".
RW_EXPORT std::string explained_size(const std::string& collective);
// Which path a call takes. Throws Error(argument) for other names, and for situations that cannot
// be.
RW_EXPORT Explanation explain_collective(const std::string& collective, std::uint64_t bytes,
                                         const Situation&);

// How the faces of a halo, `bytes` each, travel. `layout`: packets, fields or buffers, as the three
// constructors of Halo.
RW_EXPORT Explanation explain_halo(const std::string& layout, Strategy, std::uint64_t bytes,
                                   const Situation&);

// What leaves a node in one exchange of a halo.
struct HaloTraffic {
  std::string order;                 // of the ranks: row_major or by_node
  std::uint64_t faces = 0;           // that the ranks of a node send to other ranks
  std::uint64_t leaving = 0;         // those of them that go to other nodes
  std::uint64_t bytes = 0;           // of these, over the wire of the node
  std::uint64_t crossing = 0;        // those that go to another cache domain of the node
  std::uint64_t crossing_bytes = 0;  // of these
};
// For both orders (RankOrder), at the node that most faces leave, and of those where most cross
// domains: a periodic grid of these extents, with faces of `bytes` each, and ranks that were dealt
// to nodes, and to the domains of each, one after the other. Throws Error(argument) where the
// situation has other ranks than the grid.
RW_EXPORT std::vector<HaloTraffic> halo_traffic(const std::vector<int>& extents,
                                                std::uint64_t bytes, const Situation&);

}  // namespace ropewalk
