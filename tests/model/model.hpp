// What the code under test calls instead of touching shared memory, and the search that decides
// what happens then.
//
// The code runs as it is, a rank a fiber. Before each load of a flag a rank stops and the search
// chooses which rank goes on, and which of the values it may see the load returns; a rank that
// waits can be chosen once its condition is true. Every choice is tried.
//
// Flags follow the C++ memory model: a load sees any value that is not older than one it must know
// of, and an acquire that sees a release learns what the writer knew. Most have one writer; where
// there are several, the order of their stores and exchanges is chosen, too.
// Everything else is plain memory, and two accesses that no chain of releases and acquires orders,
// one of them a write, are a violation. (What is left out: loads that see stores the program order
// has not reached yet, which needs relaxed loads whose values steer stores.)
//
// States are merged: what a rank will do follows from what it remembers between calls (the numbers
// in its Team, see checkpoint) and from what it has loaded and kept since. So two schedules that
// lead to the same of both, to the same knowledge of each rank and to the same values still
// readable are the same from there on.
//
// A program may also look at flags in a loop of its own and call pause() at its end. The rank then
// stands still until a flag that it has looked at has a newer value.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace ropewalk::model {

constexpr int max_ranks = 3;
constexpr std::size_t arena_bytes = std::size_t{256} << 10;  // of one rank

// ---- called by the code under test

void create_flag(const void* flag) noexcept;
std::uint64_t load_flag(const void* flag, std::memory_order order) noexcept;
void store_flag(const void* flag, std::uint64_t value, std::memory_order order) noexcept;
// Compare-exchange, of flags that several ranks write (Program::describe).
bool exchange_flag(const void* flag, std::uint64_t& expected, std::uint64_t desired,
                   std::memory_order order) noexcept;
void wait(bool (*ready)(const void*), const void* test);
// `memory`: as in a checkpoint.
void pause(std::uint64_t memory);

// Plain accesses; those outside the arenas are nobody's concern.
void read(const void* address, std::size_t bytes) noexcept;
void write(const void* address, std::size_t bytes) noexcept;

std::byte* arena(int rank) noexcept;
// Freed memory is never handed out again within a schedule: who still touches it is found.
std::byte* allocate(std::size_t bytes, std::size_t alignment);
void deallocate(const void* address) noexcept;

int rank() noexcept;  // that runs, or is being set up
int ranks() noexcept;
void name_flag(const void* flag, const char* name);  // for reports and Options::weakened

// The rank begins its next call; what it remembers of the last ones is summed up by this number.
void checkpoint(std::uint64_t memory);
// Does the same for programs that pause, and know their place themselves.
void checkpoint_at(std::uint64_t memory);
// Hashes the values of flags that the rank that runs has seen last.
std::uint64_t hash_of_seen();
std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept;
// Returns a hash of all numbers in an object that have changed since it was made; not of pointers,
// which differ between schedules, nor of padding.
std::uint64_t numbers_changed(const void* before, const void* now, std::size_t bytes) noexcept;

// A property does not hold: ends the search.
void fail(const char* what);

// ---- the search

enum class Side { release, acquire };

struct Options {
  bool every_step = false;         // nothing is merged, stores are choices too: only to compare
  const char* weakened = nullptr;  // flags of this name are stored or loaded relaxed instead
  Side weakened_side = Side::release;
};

// What is known of a flag by its place in a block of an arena.
struct FlagFacts {
  const char* name = "flag";  // for reports and Options::weakened
  bool one_writer = true;     // its owner
};
struct FlagPlace {
  std::size_t block;        // where it begins in its arena
  std::size_t block_bytes;  // how long it is
  std::size_t offset;       // of the flag in the block
};
using Describe = FlagFacts (*)(const FlagPlace&);

struct Program {
  std::function<void()> set_up;       // once a schedule, with set_rank() for what a rank owns
  std::function<void(int rank)> run;  // on the rank's fiber; its frames may own no heap memory
  std::function<void()> tear_down;
  Describe describe = nullptr;  // for flags that are made in a run; null: all have one writer
  bool pauses = false;          // ranks wait by pause() alone
};

struct Result {
  std::string violation;       // empty: none
  std::string schedule;        // that led there, a line a step
  double schedules = 0;        // all that there are, each proved
  std::size_t runs = 0;        // executions of the program
  std::size_t states = 0;      // different ones that were met
  std::size_t ends = 0;        // different states at the end
  std::uint64_t all_ends = 0;  // a hash of them
  std::size_t weakened = 0;    // accesses that Options::weakened changed
};

void set_rank(int rank) noexcept;
Result explore(int ranks, const Program& program, const Options& options = {});

}  // namespace ropewalk::model
