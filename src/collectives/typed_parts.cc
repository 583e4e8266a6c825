#include "collectives/typed_parts.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "ropewalk/memory.hpp"

namespace ropewalk::collectives {
namespace {

using mpi::StridedBlock;

// The description of a part with more blocks would be read slower than the part is packed.
constexpr std::size_t most_described = 256;
// Data so thin are not worth pages of 2 MiB: bytes of memory to those of data.
constexpr std::size_t thin = 64;

enum class Form : std::uint64_t {
  inlined,    // packed, in the slot
  packed,     // in the sender's arena
  described,  // as it is; a description lies in the sender's arena
};
// An entry of the table in a slot, behind Shown. Slots and arenas end below 2^62.
class Entry {
 public:
  Entry() = default;
  Entry(std::uint64_t bytes, std::uint64_t place, Form form) noexcept
      : bytes_(bytes), bits_(place << 2 | static_cast<std::uint64_t>(form)) {}
  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint64_t place() const noexcept { return bits_ >> 2; }
  Form form() const noexcept { return static_cast<Form>(bits_ & 3); }

 private:
  std::uint64_t bytes_ = 0;
  std::uint64_t bits_ = 0;
};
static_assert(sizeof(Entry) == 16 && std::is_trivially_copyable_v<Entry>);
constexpr std::size_t table_at = sizeof(Shown);

// A description of elements for other ranks; the blocks follow it.
struct Description {
  Reference lowest;     // the lowest byte of data
  std::uint64_t span;   // bytes of memory to the highest
  std::int64_t origin;  // bytes from the lowest to the address that the blocks count from
  std::int64_t count;
  std::int64_t extent;
  std::uint64_t blocks;
};

std::size_t description_bytes(const TypedPart& part) {
  return sizeof(Description) + part.pattern->blocks.size() * sizeof(StridedBlock);
}

// Memory that others see, or none.
Reference visible(Engine& engine, const TypedPart& part) {
  const std::byte* lowest = part.lowest();
  const std::size_t span = part.span();
  if (span / thin <= part.bytes()) return engine.memory().visible(lowest, span);
  return Arena::process().contains(lowest, span) ? channel::PeerMemory::in_arena(lowest)
                                                 : Reference::none();
}

// Absolute displacements may lie in several allocations.
Reference described_at(Engine& engine, const TypedPart& part, bool overwritten) {
  if (overwritten || part.absolute || part.bytes() == 0 || !part.pattern->known ||
      part.pattern->blocks.size() > most_described) {
    return Reference::none();
  }
  return visible(engine, part);
}

void put_entry(node::Slot& slot, std::size_t part, const Entry& entry) {
  std::memcpy(slot.payload + table_at + part * sizeof entry, &entry, sizeof entry);
}

Entry entry_of(const node::Slot& slot, std::size_t part) {
  Entry entry;
  std::memcpy(&entry, slot.payload + table_at + part * sizeof entry, sizeof entry);
  return entry;
}

std::size_t in_line(std::size_t bytes) {
  return (bytes + node::Slot::line_bytes - 1) / node::Slot::line_bytes * node::Slot::line_bytes;
}

std::size_t packed_bytes(std::span<const TypedPart> sends, int left_out) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < sends.size(); ++i) {
    if (static_cast<int>(i) != left_out) total += sends[i].bytes();
  }
  return total;
}

// Parts, one after the other, in the slot behind the table.
std::size_t inline_parts(node::Slot& own, std::span<const TypedPart> sends, int left_out) {
  std::size_t at = table_at + sends.size() * sizeof(Entry);
  for (std::size_t i = 0; i < sends.size(); ++i) {
    const std::size_t bytes = static_cast<int>(i) == left_out ? 0 : sends[i].bytes();
    put_entry(own, i, {bytes, at, Form::inlined});
    if (bytes > 0) sends[i].pack(own.payload + at);
    at += bytes;
  }
  return at;
}

// Parts in memory: how they are shown, and the memory that this takes.
class PartsInMemory {
 public:
  PartsInMemory(Engine& engine, std::span<const TypedPart> sends, bool overwritten, int left_out)
      : sends_(sends), at_(sends.size()) {
    for (std::size_t i = 0; i < sends.size(); ++i) {
      if (static_cast<int>(i) == left_out || sends[i].bytes() == 0) continue;
      at_[i] = described_at(engine, sends[i], overwritten);
      any_packed_ |= at_[i].is_none();
      bytes_ += in_line(at_[i].is_none() ? sends[i].bytes() : description_bytes(sends[i]));
    }
    left_out_ = left_out;
  }
  std::size_t bytes() const noexcept { return bytes_; }
  bool any_packed() const noexcept { return any_packed_; }

  void show(node::Slot& own, std::byte* memory) const {
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      const TypedPart& part = sends_[i];
      if (static_cast<int>(i) == left_out_ || part.bytes() == 0) {
        put_entry(own, i, {});
        continue;
      }
      const bool packed = at_[i].is_none();
      packed ? part.pack(memory) : describe(part, at_[i], memory);
      put_entry(own, i,
                {part.bytes(), channel::PeerMemory::in_arena(memory).place(),
                 packed ? Form::packed : Form::described});
      memory += in_line(packed ? part.bytes() : description_bytes(part));
    }
  }

 private:
  static void describe(const TypedPart& part, Reference lowest, std::byte* to) {
    const std::span<const StridedBlock> blocks = part.pattern->blocks;
    const auto origin = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(part.data) -
                                                  reinterpret_cast<std::uintptr_t>(part.lowest()));
    const Description description{lowest,
                                  part.span(),
                                  origin,
                                  static_cast<std::int64_t>(part.count),
                                  part.pattern->extent,
                                  blocks.size()};
    std::memcpy(to, &description, sizeof description);
    std::memcpy(to + sizeof description, blocks.data(), blocks.size_bytes());
  }

  std::span<const TypedPart> sends_;
  std::vector<Reference> at_;  // none: packed
  std::size_t bytes_ = 0;
  bool any_packed_ = false;
  int left_out_;
};

bool take_packed(const TypedPart& to, const std::byte* from, std::byte* landing) {
  if (landing != nullptr) {
    std::memcpy(landing, from, to.bytes());
  } else {
    to.unpack(from);
  }
  return true;
}

// The description lies where its rank keeps it until all have left the call.
bool take_described(Engine& engine, int peer, const std::byte* at, const TypedPart& to,
                    std::byte* landing) {
  Description description;
  std::memcpy(&description, at, sizeof description);
  const std::byte* lowest = engine.memory().resolve(peer, description.lowest, description.span);
  if (lowest == nullptr) return false;
  const auto* blocks = reinterpret_cast<const StridedBlock*>(at + sizeof description);
  const StridedElements from{
      reinterpret_cast<std::uintptr_t>(lowest) + static_cast<std::uintptr_t>(description.origin),
      std::span(blocks, description.blocks), description.count, description.extent};
  const StridedBlock whole = one_run(to.bytes());
  const std::size_t all = to.bytes() * static_cast<std::size_t>(engine.size());
  copy_elements(from, landing != nullptr ? gapless(landing, whole) : to.elements(), to.bytes(),
                engine.stores(all));
  return true;
}

}  // namespace

std::size_t Landings::bytes(std::span<const TypedPart> receives) noexcept {
  std::size_t total = 0;
  for (const TypedPart& part : receives) {
    if (part.bytes() > 0 && !part.pattern->known) total += in_line(part.bytes());
  }
  return total;
}

std::byte* Landings::of(std::size_t part) const noexcept {
  const TypedPart& one = receives_[part];
  if (one.bytes() == 0 || one.pattern->known) return nullptr;
  return memory_ + bytes(receives_.first(part));
}

void Landings::unpack() const {
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    if (static_cast<int>(i) == left_out_) continue;
    if (const std::byte* landing = of(i)) receives_[i].unpack(landing);
  }
}

ShownParts show_parts(Engine& engine, node::Slot& own, std::span<const TypedPart> sends,
                      bool overwritten, int left_out, std::size_t landing_bytes) {
  const auto take = [&](std::size_t bytes) {
    return bytes == 0 ? nullptr
                      : engine.arrivals().or_refuse([&] { return engine.scratch().take(bytes); });
  };
  const std::size_t table = table_at + sends.size() * sizeof(Entry);
  if (table + packed_bytes(sends, left_out) <= node::Slot::payload_bytes) {
    std::byte* const landings = take(landing_bytes);
    engine.arrivals().or_refuse([&] { return inline_parts(own, sends, left_out); });
    return {{inlined_reference, Reference::none(), copied_whole},
            table + packed_bytes(sends, left_out),
            landings};
  }
  const auto parts = engine.arrivals().or_refuse(
      [&] { return PartsInMemory(engine, sends, overwritten, left_out); });
  std::byte* const memory = take(parts.bytes() + landing_bytes);
  engine.arrivals().or_refuse([&] { parts.show(own, memory); });
  if (parts.any_packed()) engine.path = Path::staged;
  return {{Reference::none()}, table, memory + parts.bytes()};
}

Taken take_part(Engine& engine, int peer, const node::Slot& slot, std::size_t part,
                const TypedPart& to, std::byte* landing) {
  const Entry entry = entry_of(slot, part);
  if (entry.bytes() != to.bytes()) return Taken::of_other_length;
  if (entry.bytes() == 0) return Taken::yes;
  if (entry.form() == Form::inlined) {
    take_packed(to, slot.payload + entry.place(), landing);
    return Taken::yes;
  }
  const std::byte* at = engine.team().base(peer) + entry.place();
  if (entry.form() == Form::packed) {
    engine.path = Path::staged;
    take_packed(to, at, landing);
    return Taken::yes;
  }
  if (engine.path == Path::inlined) engine.path = Path::mapped;
  return take_described(engine, peer, at, to, landing) ? Taken::yes : Taken::unreadable;
}

void copy_part(Engine& engine, const TypedPart& from, const TypedPart& to) {
  copy_elements(from.elements(), to.elements(), to.bytes(),
                engine.stores(to.bytes() * static_cast<std::size_t>(engine.size())));
}

}  // namespace ropewalk::collectives
