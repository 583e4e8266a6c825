#include <algorithm>
#include <utility>

#include "pending.hpp"

namespace ropewalk::preload::messages {

void CollectiveRequests::add(Word handle, Word comm,
                             std::shared_ptr<PersistentCollective> collective) {
  Pending entry;
  entry.persistent = true;
  entry.to.comm = comm;
  entry.collective = std::move(collective);
  entries_.insert_or_assign(handle, std::move(entry));
}

bool CollectiveRequests::uses(Word comm) const noexcept {
  return std::ranges::any_of(entries_,
                             [comm](const auto& entry) { return entry.second.to.comm == comm; });
}

void CollectiveRequests::forget(Word comm, Word stand_in) noexcept {
  for (auto& [handle, entry] : entries_) {
    if (entry.to.comm == comm) entry.to.comm = stand_in;
  }
}

std::shared_ptr<PersistentCollective> CollectiveRequests::collective_of(Word handle) noexcept {
  const Pending* found = find(handle);
  return found != nullptr ? found->collective : nullptr;
}

Pending* CollectiveRequests::find_far(Word handle) noexcept {
  const auto found = entries_.find(handle);
  if (found == entries_.end()) return nullptr;
  near_[place_of(handle)] = {handle, &found->second};
  return &found->second;
}

void CollectiveRequests::start(Pending& entry) noexcept {
  entry.apart = true;
  count_active(1);
  entry.collective->start();
}

void CollectiveRequests::end_round(Pending& entry) noexcept {
  end_use(entry);
  count_active(-1);
}

void CollectiveRequests::free(Pending& entry) noexcept {
  entry.freed = true;
  ++freed_;
}

void CollectiveRequests::end_freed() noexcept {
  if (freed_ == 0) return;
  for (auto at = entries_.begin(); at != entries_.end();) {
    const Word handle = at->first;
    Pending& entry = at->second;
    ++at;
    if (!entry.freed) continue;
    if (!entry.settled && !entry.collective->complete(entry.taken.code)) continue;
    complete_freed(handle, entry);
    count_active(-1);
    --freed_;
    erase(handle);
  }
}

void CollectiveRequests::erase(Word handle) noexcept {
  near_[place_of(handle)] = {};
  entries_.erase(handle);
}

void CollectiveRequests::end() noexcept {
  for (auto& [handle, entry] : entries_) {
    Word request = handle;
    if (!entry.apart) continue;
    const bool over = entry.settled || entry.collective->complete(entry.taken.code);
    if (over || entry.freed) real.request_free(&request);
  }
  near_ = {};
  entries_.clear();
  active_ = 0;
  freed_ = 0;
}

}  // namespace ropewalk::preload::messages
