#include "learning.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "large.hpp"
#include "memory/watch.hpp"
#include "os/mapping.hpp"

namespace ropewalk::malloc_library::learning {
namespace {

using memory::BlockWatch;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

// A fresh block that is freed uncommunicated is evidence. The number is small enough for programs
// that live on fresh memory, and larger than what a program frees while it warms up.
constexpr std::uint8_t enough_evidence = 8;

// A read of a page of the arena that nobody has written makes the page; libc's maps one page of
// zeroes. So not more than this of calloc'ed memory comes from the arena that was not seen
// communicated yet: that is what sparse tables can cost. In a small arena it is a sixteenth.
constexpr std::size_t most_zeroed = 256 * os::mib;

// ---- places -------------------------------------------------------------------------------------

enum class State : std::uint8_t {
  open,   // in the arena, evidence is gathered
  libc,   // enough of it
  arena,  // seen communicated: for good
};

struct Entry {
  std::atomic<std::uint64_t> key{0};  // 0: free. Never changes afterwards
  std::atomic<State> state{State::open};
  std::atomic<std::uint8_t> evidence{0};
};

// The table has 64 KiB, of which only what is used is ever touched. Places that find no entry share
// the last one, which is never given to libc.
constexpr std::size_t places = 4096;
constexpr Place crowded = places - 1;
constexpr std::size_t most_probes = 16;
constinit std::array<Entry, places> entries{};

// The note of a unit holds a place, and what to do when the block is seen communicated or freed.
constexpr std::uint16_t place_bits = 0x0FFF;
constexpr std::uint16_t is_fresh = 0x1000;
constexpr std::uint16_t is_charged = 0x2000;  // its bytes count towards most_zeroed

constinit BlockWatch watch{};
constinit bool learns = false;  // these three are written by begin
constinit const std::byte* base = nullptr;
constinit std::size_t zeroed_limit = 0;
constinit std::atomic<std::size_t> zeroed_bytes{0};

void count(std::atomic<std::uint64_t>& counter, std::uint64_t more = 1) noexcept {
  counter.fetch_add(more, memory_order_relaxed);
}

constexpr std::uint64_t spread = 0x9E3779B97F4A7C15;  // 2^64 by the golden ratio

std::uint64_t key_of(const Call& call, const void* depth) noexcept {
  // Threads' stacks lie a multiple of 64 KiB apart, as a rule: the same depth in each is one place.
  const std::uint64_t level = reinterpret_cast<std::uintptr_t>(depth) >> 4 & 0xFFF;
  const auto octave = static_cast<std::uint64_t>(std::bit_width(call.bytes));
  const std::uint64_t rest = level | octave << 12 | std::uint64_t{call.zeroed} << 20;
  const std::uint64_t key =
      (reinterpret_cast<std::uintptr_t>(call.caller) * spread ^ rest) * spread;
  return key != 0 ? key : 1;
}

// Acquire and release are not needed: an entry is whole as soon as it has its key.
bool is_or_becomes(Entry& entry, std::uint64_t key) noexcept {
  std::uint64_t found = entry.key.load(memory_order_relaxed);
  if (found == 0 && entry.key.compare_exchange_strong(found, key, memory_order_relaxed)) {
    return true;
  }
  return found == key;
}

void was_communicated(Place place) noexcept {
  if (place == crowded) return;
  const State before = entries[place].state.exchange(State::arena, memory_order_relaxed);
  if (before == State::libc) count(watch.counts.unlearned);
}

void was_wasted(Place place) noexcept {
  if (place == crowded) return;
  Entry& entry = entries[place];
  if (entry.evidence.fetch_add(1, memory_order_relaxed) + 1 < enough_evidence) return;
  State open = State::open;
  if (entry.state.compare_exchange_strong(open, State::libc, memory_order_relaxed)) {
    count(watch.counts.learned);
  }
}

// ---- blocks of the arena ------------------------------------------------------------------------

struct Units {
  std::size_t first;
  std::size_t end;
};

// Returns the units whose first byte lies in the range: no other block has them.
Units units_of(const void* block, std::size_t from, std::size_t to) noexcept {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(block) - base);
  return {(offset + from + BlockWatch::unit - 1) / BlockWatch::unit,
          (offset + to + BlockWatch::unit - 1) / BlockWatch::unit};
}

void uncharge(std::uint16_t note) noexcept {
  if ((note & is_charged) != 0) zeroed_bytes.fetch_sub(BlockWatch::unit, memory_order_relaxed);
}

void write_notes(Units units, std::uint16_t note) noexcept {
  for (std::size_t at = units.first; at < units.end; ++at) {
    watch.unseen[at].store(note, memory_order_relaxed);
  }
  if ((note & is_charged) != 0) {
    zeroed_bytes.fetch_add((units.end - units.first) * BlockWatch::unit, memory_order_relaxed);
  }
}

std::uint16_t take_note(std::size_t unit) noexcept {
  if (watch.unseen[unit].load(memory_order_relaxed) == 0) return 0;
  const std::uint16_t note = watch.unseen[unit].exchange(0, memory_order_relaxed);
  uncharge(note);
  return note;
}

// BlockWatch calls this for buffers in the arena. Where a small buffer lies between the first bytes
// of two units, one of them is its block's; it costs little that the other is taken for
// communicated, too.
void seen_inside(const void* address, std::size_t bytes) {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - base);
  const std::size_t last = BlockWatch::last_unit(offset, bytes);
  for (std::size_t at = BlockWatch::first_unit(offset, bytes); at <= last; ++at) {
    const std::uint16_t note = take_note(at);
    if (note == 0) continue;
    count(watch.counts.communicated, BlockWatch::unit);
    was_communicated(note & place_bits);
  }
}

// ---- blocks of libc -----------------------------------------------------------------------------

// The live blocks that libc was given for places, by address. A block may displace another, which
// is then not recognised any more.
struct Given {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::size_t> bytes{0};
  std::atomic<std::uint64_t> when{0};  // the generation that it began
  std::atomic<Place> place{no_place};
};
constexpr std::size_t most_given = 256;
constinit std::array<Given, most_given> given{};
constinit std::atomic<std::uint64_t> generation{0};  // goes up when an entry changes

// These buffers were looked for in vain, or once, since the last change: most programs communicate
// only a few that do not lie in the arena, again and again.
constinit std::array<std::atomic<std::uint64_t>, 64> asked{};

std::size_t hash(std::uintptr_t address, std::size_t size) noexcept {
  return (address >> 12) * spread >> 40 & (size - 1);
}

// Two threads at once may lose what the other has added: its blocks are then found when they are
// communicated, and not when they are freed.
void widen_front(std::uintptr_t begin) noexcept {
  const std::uintptr_t low = front.given.load(memory_order_relaxed);
  const std::size_t span = front.given_span.load(memory_order_relaxed);
  if (begin - low < span) return;
  const std::uintptr_t lowest = span == 0 ? begin : std::min(low, begin);
  front.given_span.store(std::max(low + span, begin + 1) - lowest, memory_order_relaxed);
  front.given.store(lowest, memory_order_relaxed);
}

Given& entry_of(const void* block) noexcept {
  return given[hash(reinterpret_cast<std::uintptr_t>(block), most_given)];
}

// Forgets the place that is known for the block there, and returns it.
Place forget(const void* block) noexcept {
  Given& entry = entry_of(block);
  if (entry.begin.load(memory_order_relaxed) != reinterpret_cast<std::uintptr_t>(block)) {
    return no_place;
  }
  entry.bytes.store(0, memory_order_relaxed);
  return entry.place.exchange(no_place, memory_order_relaxed);
}

// Torn entries, by two threads at once, cost a wrong guess.
void remember(Place place, const void* block, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  Given& entry = entry_of(block);
  widen_front(begin);
  entry.begin.store(begin, memory_order_relaxed);
  entry.bytes.store(bytes, memory_order_relaxed);
  entry.when.store(generation.fetch_add(1, memory_order_relaxed) + 1, memory_order_relaxed);
  entry.place.store(place, memory_order_relaxed);
}

bool was_asked(std::uintptr_t address) noexcept {
  const std::uint64_t question = address + (generation.load(memory_order_relaxed) << 48);
  std::atomic<std::uint64_t>& last = asked[hash(address, asked.size())];
  if (last.load(memory_order_relaxed) == question) return true;
  last.store(question, memory_order_relaxed);
  return false;
}

// BlockWatch calls this for buffers outside of the arena.
void seen_outside(const void* address, std::size_t /*bytes*/) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (generation.load(memory_order_relaxed) == 0 || was_asked(at)) return;
  Given* latest = nullptr;
  for (Given& entry : given) {
    const std::size_t bytes = entry.bytes.load(memory_order_relaxed);
    if (at - entry.begin.load(memory_order_relaxed) >= bytes) continue;
    if (latest == nullptr ||
        entry.when.load(memory_order_relaxed) > latest->when.load(memory_order_relaxed)) {
      latest = &entry;
    }
  }
  if (latest == nullptr) return;
  const Place place = latest->place.exchange(no_place, memory_order_relaxed);
  if (place == no_place) return;
  count(watch.counts.communicated, latest->bytes.load(memory_order_relaxed));
  was_communicated(place);
}

}  // namespace

void begin(const memory::ProcessArena& arena, bool does_learn) noexcept {
  const memory::ArenaRange& range = *arena.range;
  const std::size_t units = range.reserved / BlockWatch::unit + 2;
  void* notes = mmap(nullptr, units * sizeof(std::uint16_t), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (notes == MAP_FAILED) return;
  learns = does_learn;
  base = range.base;
  zeroed_limit = std::min(most_zeroed, range.reserved / 16);
  watch.seen_inside = seen_inside;
  watch.seen_outside = seen_outside;
  watch.unseen = static_cast<std::atomic<std::uint16_t>*>(notes);
  arena.watch(&watch);
}

Place place_of(const Call& call, const void* depth) noexcept {
  if (watch.unseen == nullptr || call.bytes < 2 * BlockWatch::unit) return no_place;
  count(watch.counts.bytes, call.bytes);
  const std::uint64_t key = key_of(call, depth);
  for (std::size_t probe = 0; probe < most_probes && learns; ++probe) {
    const std::size_t at = ((key >> 44) + probe) % places;
    if (at != no_place && at != crowded && is_or_becomes(entries[at], key)) {
      return static_cast<Place>(at);
    }
  }
  return crowded;
}

bool wants_libc(Place place, const Call& call) noexcept {
  if (place == no_place || !learns) return false;
  const State state = entries[place].state.load(memory_order_relaxed);
  if (state != State::open) return state == State::libc;
  return call.zeroed && zeroed_bytes.load(memory_order_relaxed) + call.bytes > zeroed_limit;
}

void placed_in_arena(Place place, const Call& call, const void* block, bool fresh) noexcept {
  if (place == no_place) return;
  std::uint16_t note = place;
  if (fresh) note |= is_fresh;
  if (call.zeroed && entries[place].state.load(memory_order_relaxed) != State::arena) {
    note |= is_charged;
  }
  write_notes(units_of(block, 0, call.bytes), note);
}

void placed_in_libc(Place place, const void* block, std::size_t bytes) noexcept {
  count(watch.counts.libc_blocks);
  count(watch.counts.libc_bytes, bytes);
  remember(place, block, bytes);
}

void freed_in_libc(const void* block) noexcept { forget(block); }

void moved_in_libc(const void* from, const void* to, std::size_t bytes) noexcept {
  if (from == nullptr || (to == nullptr && bytes > 0)) return;
  const Place place = forget(from);
  if (place != no_place && to != nullptr) remember(place, to, bytes);
}

// The first unit tells: if only others were communicated, the place is known for it already.
void freed(const void* block, std::size_t bytes) noexcept {
  if (watch.unseen == nullptr) return;
  const Units units = units_of(block, 0, bytes);
  for (std::size_t at = units.first; at < units.end; ++at) {
    const std::uint16_t note = take_note(at);
    if (at == units.first && (note & is_fresh) != 0) was_wasted(note & place_bits);
  }
}

void shrinks(const void* block, std::size_t old, std::size_t bytes) noexcept {
  if (watch.unseen == nullptr || bytes >= old) return;
  const Units units = units_of(block, bytes, old);
  for (std::size_t at = units.first; at < units.end; ++at) take_note(at);
}

void grew(const void* block, std::size_t old, std::size_t bytes) noexcept {
  if (watch.unseen == nullptr || bytes <= old) return;
  const std::size_t first = units_of(block, 0, old).first;
  count(watch.counts.bytes, bytes - old);
  write_notes(units_of(block, old, bytes), watch.unseen[first].load(memory_order_relaxed));
}

}  // namespace ropewalk::malloc_library::learning
