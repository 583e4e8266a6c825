#include "model/memory.hpp"

#include <algorithm>

namespace ropewalk::model {
namespace {

constexpr std::size_t word_bytes = 8;
constexpr std::size_t page_bytes = 4096;

}  // namespace

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept {  // splitmix64's finaliser
  hash += 0x9e3779b97f4a7c15ULL + value;
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
  return hash ^ hash >> 31;
}

Memory::Memory()
    : memory_(max_ranks * arena_bytes + page_bytes), words_(max_ranks * arena_bytes / word_bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
  base_ = memory_.data() + (page_bytes - address % page_bytes) % page_bytes;
}

void Memory::reset(Describe describe) {
  describe_ = describe;
  ++era_;
  used_locations_ = 0;
  touched_.clear();
  allocated_.fill(0);
  blocks_.clear();
  for (int rank = 0; rank < max_ranks; ++rank) {
    known_[rank].fill(0);
    known_[rank][rank] = 1;
  }
}

// ---- arenas

std::byte* Memory::arena(int rank) const noexcept {
  return base_ + static_cast<std::size_t>(rank) * arena_bytes;
}

std::byte* Memory::allocate(int rank, std::size_t bytes, std::size_t alignment) {
  std::size_t& used = allocated_[rank];
  used = (used + alignment - 1) / alignment * alignment;
  std::byte* block = arena(rank) + used;
  used += std::max<std::size_t>(bytes, 1);
  if (used > arena_bytes) return nullptr;
  blocks_.push_back({block, bytes});
  return block;
}

const char* Memory::deallocate(int rank, const void* address) {
  if (rank < 0) return nullptr;  // the schedule is over
  const auto block = std::ranges::find(blocks_, address, &Block::begin);
  if (block == blocks_.end()) return "frees what is no block";
  std::size_t first = 0;
  std::size_t end = 0;
  if (!locate(address, block->bytes, first, end)) return nullptr;
  for (std::size_t index = first; index < end; ++index) {
    if (const char* found = check_write(rank, index, "frees")) return found;
    word(index).freed = true;
  }
  return nullptr;
}

// ---- plain accesses

bool Memory::locate(const void* address, std::size_t bytes, std::size_t& first,
                    std::size_t& end) const {
  const auto* at = static_cast<const std::byte*>(address);
  if (bytes == 0 || at < base_ || at >= base_ + max_ranks * arena_bytes) return false;
  const auto offset = static_cast<std::size_t>(at - base_);
  first = offset / word_bytes;
  end = std::min(words_.size(), (offset + bytes + word_bytes - 1) / word_bytes);
  return true;
}

Memory::Word& Memory::word(std::size_t index) {
  Word& found = words_[index];
  if (found.era != era_) {
    found = Word{};
    found.era = era_;
    touched_.push_back(index);
  }
  return found;
}

const char* Memory::problem(const char* verb, std::size_t index, const std::string& why) {
  const std::size_t words = arena_bytes / word_bytes;
  problem_ = std::string(verb) + " byte " + std::to_string(index % words * word_bytes) +
             " of rank " + std::to_string(index / words) + "'s arena" + why;
  return problem_.c_str();
}

const char* Memory::read(int rank, const void* address, std::size_t bytes) {
  std::size_t first = 0;
  std::size_t end = 0;
  if (rank < 0 || !locate(address, bytes, first, end)) return nullptr;
  for (std::size_t index = first; index < end; ++index) {
    Word& found = word(index);
    if (found.freed) return problem("reads", index, ", which was freed");
    if (!found.filled) return problem("reads", index, ", which nobody has written yet");
    if (found.writer >= 0 && found.written > known_[rank][found.writer]) {
      return problem("reads", index,
                     " while rank " + std::to_string(found.writer) + " may still be writing it");
    }
    found.read[rank] = known_[rank][rank];
  }
  return nullptr;
}

const char* Memory::check_write(int rank, std::size_t index, const char* verb) {
  const Word& found = word(index);
  if (found.freed) return problem(verb, index, ", which was freed");
  if (found.writer >= 0 && found.written > known_[rank][found.writer]) {
    return problem(verb, index,
                   " while rank " + std::to_string(found.writer) + " may still be writing it");
  }
  for (int reader = 0; reader < max_ranks; ++reader) {
    if (reader == rank || found.read[reader] <= known_[rank][reader]) continue;
    return problem(verb, index,
                   " while rank " + std::to_string(reader) + " may still be reading it");
  }
  return nullptr;
}

const char* Memory::write(int rank, const void* address, std::size_t bytes) {
  std::size_t first = 0;
  std::size_t end = 0;
  if (!locate(address, bytes, first, end)) return nullptr;
  for (std::size_t index = first; index < end; ++index) {
    if (rank >= 0) {
      if (const char* found = check_write(rank, index, "writes")) return found;
      word(index).written = known_[rank][rank];
    }
    word(index).writer = rank;
    word(index).filled = true;
  }
  return nullptr;
}

// ---- flags

FlagFacts Memory::facts_of(const void* flag) const {
  const auto* at = static_cast<const std::byte*>(flag);
  for (const Block& block : blocks_) {
    if (describe_ == nullptr || at < block.begin || at >= block.begin + block.bytes) continue;
    const auto begin = static_cast<std::size_t>(block.begin - base_) % arena_bytes;
    return describe_({begin, block.bytes, static_cast<std::size_t>(at - block.begin)});
  }
  return {};
}

const char* Memory::create(int rank, const void* flag) {
  std::size_t first = 0;
  std::size_t end = 0;
  if (!locate(flag, word_bytes, first, end)) return nullptr;
  if (const char* found = write(rank, flag, word_bytes)) return found;
  if (used_locations_ == locations_.size()) locations_.emplace_back();
  Location& created = locations_[used_locations_];
  const FlagFacts facts = facts_of(flag);
  created.name = facts.name;
  created.one_writer = facts.one_writer;
  created.owner = owner_of(flag);
  created.word = first;
  created.messages.assign(1, Message{});
  created.seen.fill(0);
  created.noted.fill(0);
  word(first).location = static_cast<int>(used_locations_++);
  return nullptr;
}

const char* Memory::check_made(int rank, const void* flag) {
  const std::size_t index = location(flag).word;
  const Word& found = word(index);
  if (found.freed) return problem("looks at", index, ", which was freed");
  if (found.writer < 0 || found.written <= known_[rank][found.writer]) return nullptr;
  return problem("looks at", index,
                 " while rank " + std::to_string(found.writer) + " may still be making it");
}

Memory::Location& Memory::location(const void* flag) {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(flag) - base_);
  return locations_[static_cast<std::size_t>(word(offset / word_bytes).location)];
}

void Memory::name(const void* flag, const char* name) { location(flag).name = name; }
const char* Memory::name_of(const void* flag) { return location(flag).name; }

int Memory::owner_of(const void* flag) const noexcept {
  return static_cast<int>((static_cast<const std::byte*>(flag) - base_) / arena_bytes);
}

std::size_t Memory::newest(const void* flag) { return location(flag).messages.size() - 1; }

std::size_t Memory::oldest_readable(int rank, const void* flag) {
  return oldest_readable(rank, location(flag));
}

std::size_t Memory::oldest_readable(int rank, const Location& found) const {
  const auto is_known = [&](const Message& message) {
    return message.writer < 0 || message.clock <= known_[rank][message.writer];
  };
  std::size_t index = found.messages.size() - 1;
  while (index > found.seen[rank] && !is_known(found.messages[index])) --index;
  return index;
}

std::uint64_t Memory::peek(const void* flag, std::size_t index) {
  return location(flag).messages[index].value;
}

std::uint64_t Memory::load(int rank, const void* flag, std::size_t index, bool acquire) {
  Location& found = location(flag);
  const Message& message = found.messages[index];
  found.seen[rank] = index;
  for (int known = 0; acquire && known < max_ranks; ++known) {
    known_[rank][known] = std::max(known_[rank][known], message.view[known]);
  }
  return message.value;
}

void Memory::store(int rank, const void* flag, std::uint64_t value, bool release) {
  Location& found = location(flag);
  if (rank < 0) {
    found.messages.back().value = value;
    return;
  }
  Message message{value, {}, known_[rank][rank], rank};
  if (release) {
    message.view = known_[rank];
    ++known_[rank][rank];
  }
  found.messages.push_back(message);
  found.seen[rank] = found.messages.size() - 1;
}

void Memory::exchange(int rank, const void* flag, std::uint64_t value, bool release) {
  const Clocks before = location(flag).messages.back().view;
  store(rank, flag, value, release);
  Clocks& view = location(flag).messages.back().view;
  for (int known = 0; known < max_ranks; ++known)
    view[known] = std::max(view[known], before[known]);
}

// ---- news

bool Memory::note_seen(int rank, const void* flag, std::size_t index) {
  std::size_t& noted = location(flag).noted[rank];
  const bool is_news = index != noted;
  noted = index;
  return is_news;
}

bool Memory::has_news(int rank, const void* flag) {
  return newest(flag) > location(flag).noted[rank];
}

void Memory::see_news(int rank, const void* flag) {
  Location& found = location(flag);
  found.seen[rank] = std::max(found.seen[rank], found.noted[rank] + 1);
}

std::uint64_t Memory::hash_of_seen(int rank) const {
  std::uint64_t sum = 0;  // in any order: flags are made in different ones
  for (std::size_t index = 0; index < used_locations_; ++index) {
    const Location& found = locations_[index];
    std::uint64_t hash = mix(found.word, found.noted[rank]);
    if (!found.one_writer || found.owner == rank) hash = mix(hash, found.messages.size());
    sum += hash;
  }
  return sum;
}

// A view counts as far as it tells some rank something new.
void Memory::describe_state(int ranks, std::vector<std::uint64_t>& state) const {
  Clocks common = known_[0];
  for (int rank = 0; rank < ranks; ++rank) {
    for (int known = 0; known < ranks; ++known) {
      state.push_back(known_[rank][known]);
      common[known] = std::min(common[known], known_[rank][known]);
    }
  }
  for (std::size_t index = 0; index < used_locations_; ++index) {
    const Location& found = locations_[index];
    if (found.messages.size() == 1) continue;
    std::size_t first = found.messages.size() - 1;
    for (int rank = 0; rank < ranks; ++rank) {
      if (found.one_writer && rank == found.owner) continue;
      const std::size_t oldest = oldest_readable(rank, found);
      state.push_back(oldest);
      first = std::min(first, oldest);
    }
    for (; first < found.messages.size(); ++first) {
      for (int known = 0; known < ranks; ++known) {
        state.push_back(std::max(found.messages[first].view[known], common[known]));
      }
      if (found.one_writer) continue;
      state.push_back(found.messages[first].value);
      state.push_back(found.messages[first].clock);
      state.push_back(static_cast<std::uint64_t>(found.messages[first].writer));
    }
    state.push_back(~found.word);
  }
  state.push_back(hash_of_accesses(common));
}

// Two ways to one place may differ in what was read or written last.
std::uint64_t Memory::hash_of_accesses(const Clocks& known_to_all) const {
  std::uint64_t sum = 0;  // in any order
  for (const std::size_t index : touched_) {
    const Word& found = words_[index];
    if (found.writer >= 0 && found.written > known_to_all[found.writer]) {
      sum += mix(mix(index, found.written), static_cast<std::uint64_t>(found.writer));
    }
    for (int reader = 0; reader < max_ranks; ++reader) {
      if (found.read[reader] <= known_to_all[reader]) continue;
      sum += mix(mix(~index, found.read[reader]), static_cast<std::uint64_t>(reader));
    }
  }
  return sum;
}

}  // namespace ropewalk::model
