// The room of settings: every variable ROPEWALK_… as one row of one table. From the table come the
// parsing (value.hpp), the comparison between ranks (shared.hpp), the nearest known name of an
// unknown one (names.hpp), `ropewalk config`, and docs/reference/environment.md
// (scripts/settings_reference.py).
//
// The room never prints and knows nothing of MPI. It is in the malloc library as well: the table
// and what reads it allocate nothing and throw nothing, but for what says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace ropewalk::settings {

// The rows, in the order of the table.
enum class Id : std::uint8_t {
  // The library reads these.
  lanes,
  pages,
  memory,
  arena_bytes,
  fork,
  malloc_threshold,
  malloc_learn,
  isa,
  xpmem,
  registrations,
  registration_trace,
  domains,
  nodes,
  interface,
  timeout,
  allreduce,
  reduction_threads,
  piece_bytes,
  movements,
  profile,
  profile_machine,
  disable,
  stats,
  nonblocking,
  device_buffers,
  messages,
  onesided,
  mpi_library,
  // The command reads these.
  mpi,
  preload,
  line_rate,
  libexec,
  // The command sets these, for what it starts.
  set,
  bench_settings,
  box,
  box_nodes,
  box_cores,
  box_rails,
  // The scripts of the tree read these.
  jobs,
  command
};
inline constexpr std::size_t options = static_cast<std::size_t>(Id::command) + 1;

// The kind says what may stand beside the words of an option. Each has one grammar (value.cc).
enum class Kind : std::uint8_t {
  choice,  // nothing but the words
  count,   // a whole number in decimal digits
  bytes,   // the same, and K, M, G or T behind it, each also with B or iB: powers of 1024
  real,    // a decimal number above 0
  path,    // of a file or a folder; not looked at
  file,    // the same of a file, for which its contents stand where ranks compare it
  nodes,   // ranks a node as in 2,1,3, or round:N
  text     // anything
};

// The scope says between which ranks a value must be the same.
enum class Scope : std::uint8_t {
  rank,       // each rank may have its own
  all_ranks,  // compared when ranks come together (shared.hpp)
  command     // no rank reads it
};

enum class Reader : std::uint8_t { library, malloc, drop_in, command, set_by_command, scripts };

struct Option {
  Id id;
  std::string_view name;
  Kind kind;
  std::string_view words;      // separated by commas
  std::string_view unit;       // of a number, or what a path leads to
  std::string_view fallback;   // the value where none is given; empty: none
  std::string_view automatic;  // what that means on this machine, where it is not plain
  Scope scope;
  Reader reader;
  std::string_view page;     // in docs/, which says more
  std::string_view meaning;  // Markdown, with links from docs/reference/
  std::int64_t least = 0;    // of a number; of bytes 0 is `off` where there is that word
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};

std::span<const Option> table() noexcept;
const Option& option(Id) noexcept;

const char* name(Kind) noexcept;
const char* name(Scope) noexcept;
const char* name(Reader) noexcept;

}  // namespace ropewalk::settings
