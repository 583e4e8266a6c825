#include "round_log.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "kernels/kernels.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::preload {
namespace {

constexpr std::size_t line = 64;  // bytes of a line of the cache
// So many records, or bytes of them, are used before the others are asked which of them are free.
constexpr std::size_t records_unasked = 8;
constexpr std::size_t bytes_unasked = std::size_t{8} << 10;
// So many free records, and bytes of them, are kept.
constexpr std::size_t most_free = 32;
constexpr std::size_t most_free_bytes = std::size_t{8} << 20;
// A rank tells how far it is after so many rounds of small data: telling costs two transfers of a
// line.
constexpr std::uint64_t rounds_untold = 4;
constexpr std::size_t least_told_bytes = std::size_t{2} << 10;
// So many rounds, or bytes of what it sends, may a rank complete ahead of one that it does not
// receive from.
constexpr std::uint64_t most_rounds_ahead = 64;
constexpr std::size_t most_bytes_ahead = std::size_t{256} << 10;

constexpr std::size_t least_record = 256;  // bytes

bool is_same(const SentBlock& a, const SentBlock& b) noexcept {
  return a.from == b.from && a.bytes == b.bytes;
}

// Returns the only block that is sent, to some ranks or to all; null where there are several.
const SentBlock* only_block(std::span<const SentBlock> sent) noexcept {
  const SentBlock* only = nullptr;
  for (const SentBlock& block : sent) {
    if (block.bytes == 0) continue;
    if (only != nullptr && !is_same(*only, block)) return nullptr;
    only = &block;
  }
  static constexpr SentBlock nothing{nullptr, 0};
  return only == nullptr ? &nothing : only;
}

// Where a block goes behind `end`: beside what is there, or in whole lines.
std::size_t place_behind(std::size_t end, std::size_t bytes) noexcept {
  return end % line + bytes > line ? (end + line - 1) / line * line : end;
}

}  // namespace

std::size_t RoundLog::bytes_for(int ranks) {
  return sizeof(Header) + static_cast<std::size_t>(ranks) * sizeof(std::uint64_t);
}

RoundLog::RoundLog(Collectives& team)
    : memory_(team, bytes_for(team.size())), cursors_(static_cast<std::size_t>(team.size())) {
  last_ = &(new (memory_.own()) Header)->first;
  for (int rank = 0; rank < team.size(); ++rank) {
    new (passed(team.rank()) + rank) std::atomic<std::uint64_t>{0};
  }
  free_.reserve(most_free);
}

// The records are given back with the log, once all others have left that.
RoundLog::~RoundLog() {
  for (Record* const record : free_) Arena::process().deallocate(record);
  for (Record* const record : used_) memory_.keep(record);
}

void RoundLog::connect() noexcept {
  for (std::size_t rank = 0; rank < cursors_.size(); ++rank) {
    cursors_[rank].record = &header(static_cast<int>(rank)).first;
  }
}

// ---- the rank's own chain

std::uint64_t RoundLog::begin(std::span<const SentBlock> sent) noexcept {
  try {
    rounds_.push_back({begun_ + 1, std::vector<const Record*>(cursors_.size()), false});
  } catch (...) {  // no memory
    return refuse(), 0;
  }
  Record* record = nullptr;
  try {
    record = write(sent);
    used_.push_back(record);
  } catch (...) {
    rounds_.pop_back();
    if (record != nullptr) Arena::process().deallocate(record);
    return refuse(), 0;
  }
  record->round = ++begun_;
  header(memory_.rank()).begun.store(begun_, std::memory_order_relaxed);
  // This release pairs with the acquire in look(): the blocks are there.
  last_->next.store(Arena::process().offset(record), std::memory_order_release);
  last_ = record;
  rounds_.back().records[own()] = record;
  return begun_;
}

RoundLog::Record* RoundLog::write(std::span<const SentBlock> sent) {
  const SentBlock* const only = only_block(sent);
  std::vector<Placed> places;
  std::size_t end = sizeof(Record);
  if (only == nullptr) end += sent.size() * sizeof(Placed);
  for (const SentBlock& block : only != nullptr ? std::span(only, 1) : sent) {
    const std::size_t at = place_behind(end, block.bytes);
    places.push_back({at, block.bytes});
    end = at + block.bytes;
  }
  Record* const record = take(end);
  record->next.store(0, std::memory_order_relaxed);
  auto* const bytes = reinterpret_cast<std::byte*>(record);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const SentBlock& block = only != nullptr ? *only : sent[i];
    kernels::copy(bytes + places[i].at, block.from, block.bytes, kernels::Stores::temporal);
  }
  record->blocks = only != nullptr ? 0 : places.size();
  if (only != nullptr) {
    record->placed = places.front();
  } else {
    std::memcpy(bytes + sizeof(Record), places.data(), places.size() * sizeof(Placed));
  }
  return record;
}

RoundLog::Record* RoundLog::take(std::size_t bytes) {
  if (used_.size() >= records_unasked || used_.size() * bytes >= bytes_unasked) collect_free();
  if (Record* const found = take_free(bytes)) return found;
  const std::size_t capacity = std::bit_ceil(std::max(bytes, least_record));
  const auto make = [&] {
    auto* const made = new (Arena::process().allocate(capacity)) Record;
    made->capacity = capacity;
    return made;
  };
  try {
    return make();
  } catch (...) {  // the arena is full: give back what is free
    collect_free();
    for (Record* const record : free_) Arena::process().deallocate(record);
    free_.clear();
    free_bytes_ = 0;
    return make();
  }
}

// Returns the smallest that is large enough, or null. One that is much too large is left to others.
RoundLog::Record* RoundLog::take_free(std::size_t bytes) noexcept {
  auto best = free_.end();
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    const std::size_t capacity = (*at)->capacity;
    if (capacity < bytes || capacity / 8 > std::max(bytes, least_record)) continue;
    // Of several the one that was used last, which is in the caches.
    if (best == free_.end() || capacity <= (*best)->capacity) best = at;
  }
  if (best == free_.end()) return nullptr;
  Record* const found = *best;
  free_.erase(best);
  free_bytes_ -= found->capacity;
  return found;
}

void RoundLog::collect_free() {
  std::uint64_t by_all = first();
  for (int rank = 0; rank < memory_.size(); ++rank) {
    if (rank == memory_.rank()) continue;
    // This acquire pairs with the release in tell_passed(): they have read before.
    by_all = std::min(by_all, passed(rank)[own()].load(std::memory_order_acquire));
  }
  while (!used_.empty() && used_.front()->round < by_all) {
    Record* const record = used_.front();
    used_.pop_front();
    if (free_.size() < most_free && free_bytes_ + record->capacity <= most_free_bytes) {
      free_.push_back(record);
      free_bytes_ += record->capacity;
    } else {
      Arena::process().deallocate(record);
    }
  }
}

// A round without a record: the chain goes on with the next one.
void RoundLog::refuse() noexcept {
  ++begun_;
  header(memory_.rank()).begun.store(begun_, std::memory_order_relaxed);
  // This release pairs with the acquire in has_refused(): there is no record of this round behind
  // those that are there.
  header(memory_.rank()).refused.store(begun_, std::memory_order_release);
}

// ---- the chains of the others

void RoundLog::look() noexcept {
  for (std::size_t rank = 0; rank < cursors_.size(); ++rank) {
    if (rank == own()) continue;
    Cursor& cursor = cursors_[rank];
    while (cursor.record->round < begun_) {
      // This acquire pairs with the release in begin().
      const std::uint64_t at = cursor.record->next.load(std::memory_order_acquire);
      if (at == 0) break;
      const auto* const record =
          reinterpret_cast<const Record*>(memory_.arena(static_cast<int>(rank)) + at);
      if (record->round > begun_) break;  // behind one that was refused
      cursor.record = record;
      if (Round* const round = find_round(record->round)) round->records[rank] = record;
    }
  }
}

bool RoundLog::has_refused(int rank, std::uint64_t round) noexcept {
  // This acquire pairs with the release in refuse().
  if (header(rank).refused.load(std::memory_order_acquire) < round) return false;
  look();
  return !has(rank, round);
}

RoundLog::Found RoundLog::find(int rank, std::uint64_t round, std::size_t number) noexcept {
  const Record* const found = record(rank, round);
  const auto* const bytes = reinterpret_cast<const std::byte*>(found);
  if (found->blocks == 0) return {bytes + found->placed.at, found->placed.bytes};
  if (number >= found->blocks) return {nullptr, 0};
  const Placed& placed = reinterpret_cast<const Placed*>(found + 1)[number];
  return {bytes + placed.at, placed.bytes};
}

bool RoundLog::is_near(int rank, std::uint64_t round, std::size_t bytes) const noexcept {
  const std::uint64_t ahead =
      std::clamp<std::uint64_t>(most_bytes_ahead / (bytes + 1), 2, most_rounds_ahead);
  return header(rank).begun.load(std::memory_order_relaxed) + ahead >= round;
}

void RoundLog::leave(std::uint64_t round, std::size_t bytes) noexcept {
  find_round(round)->over = true;
  while (!rounds_.empty() && rounds_.front().over) rounds_.pop_front();
  tell_passed(bytes >= least_told_bytes ? 1 : rounds_untold);
}

// They are consecutive, but for rounds that this rank has refused.
RoundLog::Round* RoundLog::find_round(std::uint64_t number) noexcept {
  if (rounds_.empty() || number < rounds_.front().number) return nullptr;
  std::size_t at = std::min<std::uint64_t>(number - rounds_.front().number, rounds_.size() - 1);
  while (rounds_[at].number > number) --at;
  return rounds_[at].number == number ? &rounds_[at] : nullptr;
}

// Of the record where the cursor is, the next one has yet to be found.
std::uint64_t RoundLog::passed_here(int rank) const noexcept {
  return std::min(first(), cursors_[static_cast<std::size_t>(rank)].record->round);
}

void RoundLog::tell_passed(std::uint64_t least) noexcept {
  for (int rank = 0; rank < memory_.size(); ++rank) {
    if (rank == memory_.rank()) continue;
    Cursor& cursor = cursors_[static_cast<std::size_t>(rank)];
    const std::uint64_t here = passed_here(rank);
    if (here < cursor.told + least) continue;
    cursor.told = here;
    // This release pairs with the acquire in collect_free(): what this rank has read, it has read
    // before.
    passed(memory_.rank())[rank].store(here, std::memory_order_release);
  }
}

std::shared_ptr<RoundLog> make_round_log(Collectives& team, bool able) {
  std::shared_ptr<RoundLog> made;
  std::vector<std::uint64_t> offsets;
  try {
    offsets.resize(static_cast<std::size_t>(team.size()));
    if (able) made = std::make_shared<RoundLog>(team);
  } catch (...) {  // no memory
  }
  std::int64_t all = made != nullptr ? 1 : 0;
  team.allreduce(in_place, &all, 1, element_type<std::int64_t>(), ReductionOp::min);
  if (all == 0) return nullptr;
  const std::uint64_t own = made->memory().offset();
  team.allgather(&own, offsets.data(), sizeof own);
  made->memory().connect(offsets);
  made->memory().share();
  made->connect();
  return made;
}

}  // namespace ropewalk::preload
