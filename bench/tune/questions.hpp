// This header lists the thresholds that `ropewalk tune` searches. Each has the two ways between
// which it decides, or the values that are tried, and the calls that show the difference.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/shape.hpp"
#include "tune/search.hpp"
#include "tuning/profile.hpp"

namespace ropewalk::bench {

// Amount says what a threshold is compared with, in terms of the bytes of a call (CallShape): these
// bytes themselves, or times the number of ranks, or times the number of the other ranks, or half
// of them.
enum class Amount { bytes, all_blocks, other_blocks, half };

// TuneMemory says where the buffers of a call lie: all in the arena, all in private memory, or as
// in the axis value mixed of `ropewalk bench collectives`: the send buffers (of a broadcast, the
// root's) in private memory, and the receive buffers in the arena.
enum class TuneMemory { arena, all_private, mixed };
std::string_view name(TuneMemory);

struct TuneCall {
  Op op = Op::allreduce;
  Amount amount = Amount::bytes;
};

struct Question {
  tuning::Id id;
  bool of_channel = false;  // it is asked by messages, otherwise by collectives
  bool over_nodes = false;  // it is asked between nodes, otherwise on one
  TuneMemory memory = TuneMemory::arena;
  bool rewritten = false;  // the send buffers are written anew before each call
  bool from_on = false;    // as in Border
  // These profiles force the ways below and above a border. They are empty where values are tried.
  std::string_view below = {};
  std::string_view above = {};
  std::string_view beside = {};  // lines of the profile for all ways
  // So many factors of two below and above the default are measured: sizes for a border, values
  // otherwise.
  int down = 0;
  int up = 0;
  // These sizes are measured for values, and for a border whose default lies far from all of them.
  std::vector<std::size_t> sizes = {};
  std::vector<TuneCall> calls = {};  // the collectives that are measured

  bool has_border() const { return !below.empty(); }
  std::string_view name() const { return tuning::row(id).name; }
};

// Returns the questions in the order in which they are asked. What one finds is in force for those
// after it.
const std::vector<Question>& questions();
// The same between nodes.
const std::vector<Question>& questions_over_nodes();
// Returns `lines`, and a line for each of `found` whose threshold they do not name.
std::string with_found(std::string_view lines,
                       const std::map<std::string, std::size_t, std::less<>>& found);

// A ForcedPath is a profile that makes a collective take one path, so that its cost can be
// measured.
struct ForcedPath {
  TuneMemory memory;
  std::string_view path;  // name(Path)
  std::string_view profile;
};
const std::vector<ForcedPath>& forced_paths();

// The same between nodes: a profile that makes a collective take one algorithm.
struct ForcedAlgorithm {
  Op op;
  std::string_view algorithm;  // Alternative::algorithm
  std::string_view profile;
};
const std::vector<ForcedAlgorithm>& forced_over_nodes();

// Returns the bytes of the call for which the threshold is compared with `amount`.
std::size_t call_bytes(const TuneCall& call, std::size_t amount, int ranks);

}  // namespace ropewalk::bench
