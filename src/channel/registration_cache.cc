#include "channel/registration_cache.hpp"

#include <unistd.h>

#include <algorithm>

namespace ropewalk::channel {

RegistrationCache::RegistrationCache(Provider& provider, std::size_t capacity, Eviction eviction)
    : provider_(provider),
      capacity_(std::max<std::size_t>(capacity, 1)),
      eviction_(eviction),
      page_bytes_(static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))) {}

RegistrationCache::~RegistrationCache() {
  while (!peers_.empty()) {
    peers_.begin()->second.users = 1;
    close(peers_.begin()->first);
  }
}

bool RegistrationCache::open(Segment segment) {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(segment);
  if (found == peers_.end() && !provider_.open(segment)) return false;
  ++peers_[segment].users;
  return true;
}

void RegistrationCache::close(Segment segment) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(segment);
  if (found == peers_.end() || --found->second.users > 0) return;
  while (!found->second.intervals.empty()) retire(found->second.intervals.begin()->second);
  peers_.erase(found);
  provider_.close(segment);
}

RegistrationCache::Registration RegistrationCache::acquire(Segment segment, std::uint64_t address,
                                                           std::size_t bytes) {
  const Interval wanted{address / page_bytes_ * page_bytes_,
                        (address + bytes + page_bytes_ - 1) / page_bytes_ * page_bytes_};
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(segment);
  if (found == peers_.end()) return {};
  Peer& peer = found->second;
  Entry* entry = find(peer, wanted);
  if (entry != nullptr) {
    ++counts_.hits;
    if (eviction_ == Eviction::lru) entries_.splice(entries_.end(), entries_, entry->self);
  } else {
    ++counts_.misses;
    const Interval whole = with_overlapping(peer, wanted);
    std::byte* local = attach(segment, whole);
    if (local == nullptr) return {};
    // The old ones go last: an attachment that failed has cost nothing.
    for (auto old = peer.intervals.lower_bound(whole.begin);
         old != peer.intervals.end() && old->first < whole.end;) {
      retire((old++)->second);
    }
    make_room(capacity_ - 1);
    entries_.push_back({segment, whole.begin, whole.end, local, 0, false, {}});
    entry = &entries_.back();
    entry->self = std::prev(entries_.end());
    peer.intervals.emplace(whole.begin, entry->self);
  }
  ++entry->pins;
  return {entry->local + (address - entry->begin), entry};
}

void RegistrationCache::release(std::span<Entry* const> entries) noexcept {
  const std::lock_guard lock(mutex_);
  for (Entry* entry : entries) {
    if (--entry->pins == 0 && entry->retired) detach(retired_, entry->self);
  }
}

CacheCounts RegistrationCache::counts() const {
  const std::lock_guard lock(mutex_);
  CacheCounts counts = counts_;
  counts.entries = entries_.size() + retired_.size();
  return counts;
}

// Finds the entry that holds all of the interval. It can only be the last one that begins at or
// before it.
RegistrationCache::Entry* RegistrationCache::find(Peer& peer, const Interval& wanted) noexcept {
  auto after = peer.intervals.upper_bound(wanted.begin);
  if (after == peer.intervals.begin()) return nullptr;
  Entry& entry = *std::prev(after)->second;
  return entry.end >= wanted.end ? &entry : nullptr;
}

RegistrationCache::Interval RegistrationCache::with_overlapping(const Peer& peer,
                                                                Interval wanted) const {
  auto next = peer.intervals.upper_bound(wanted.begin);
  if (next != peer.intervals.begin()) {
    const Entry& before = *std::prev(next)->second;
    if (before.end > wanted.begin) {
      wanted = {before.begin, std::max(before.end, wanted.end)};
    }
  }
  for (; next != peer.intervals.end() && next->first < wanted.end; ++next) {
    wanted.end = std::max(wanted.end, next->second->end);
  }
  return wanted;
}

// A kernel that refuses may have run out of mappings or of memory to pin. So the cache gives its
// own up and tries once more.
std::byte* RegistrationCache::attach(Segment segment, const Interval& interval) {
  const std::size_t bytes = interval.end - interval.begin;
  std::byte* local = provider_.attach(segment, interval.begin, bytes);
  if (local != nullptr || entries_.empty()) return local;
  make_room(0);
  return provider_.attach(segment, interval.begin, bytes);
}

// Leaves at most `capacity` entries, and those that are pinned.
void RegistrationCache::make_room(std::size_t capacity) noexcept {
  for (auto entry = entries_.begin(); entry != entries_.end() && entries_.size() > capacity;) {
    const auto candidate = entry++;
    if (candidate->pins > 0) continue;
    ++counts_.evictions;
    retire(candidate);
  }
}

// Out of its tree, and detached as soon as nobody uses it.
void RegistrationCache::retire(Entries::iterator entry) noexcept {
  peers_.find(entry->segment)->second.intervals.erase(entry->begin);
  if (entry->pins == 0) {
    detach(entries_, entry);
  } else {
    entry->retired = true;
    retired_.splice(retired_.end(), entries_, entry);
  }
}

void RegistrationCache::detach(Entries& list, Entries::iterator entry) noexcept {
  provider_.detach(entry->local, entry->end - entry->begin);
  list.erase(entry);
}

}  // namespace ropewalk::channel
