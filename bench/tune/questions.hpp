// The thresholds that are searched: for each, the two ways between which it decides, or the values
// that are tried, and the calls that show the difference.
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

// What a threshold is compared with, in terms of the bytes of a call (CallShape).
enum class Amount { bytes, all_blocks, other_blocks };

struct TuneCall {
  Op op = Op::allreduce;
  Amount amount = Amount::bytes;
};

struct Question {
  tuning::Id id;
  bool of_channel = false;  // messages; otherwise collectives
  bool is_private = false;  // memory
  bool rewritten = false;   // the send buffers, before each call
  bool from_on = false;
  // Profiles that force the ways of a border: below and above it; none for values.
  std::string_view below = {};
  std::string_view above = {};
  std::string_view beside = {};  // lines for all ways
  int down = 0;  // factors of two of the sizes, or of the values, around the default
  int up = 0;
  std::vector<std::size_t> sizes = {};  // of values; of a border whose default is none of them
  std::vector<TuneCall> calls = {};     // of collectives

  bool has_border() const { return !below.empty(); }
  std::string_view name() const { return tuning::row(id).name; }
};

// In their order: what one finds is in force for those after it.
const std::vector<Question>& questions();
// `lines`, and those of `found` whose thresholds they do not name.
std::string with_found(std::string_view lines,
                       const std::map<std::string, std::size_t, std::less<>>& found);

// A way that a collective can be made to go, for the cost of each path.
struct ForcedPath {
  bool is_private;
  std::string_view path;  // name(Path)
  std::string_view profile;
};
const std::vector<ForcedPath>& forced_paths();

// Bytes of the call where the threshold sees `amount`.
std::size_t call_bytes(const TuneCall& call, std::size_t amount, int ranks);

}  // namespace ropewalk::bench
