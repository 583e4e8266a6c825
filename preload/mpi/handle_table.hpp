// From a handle of MPI to what the drop-in keeps for it: a probe or two, without a lock.
//
// Entries are never given back to the allocator: a thread that looks up its own handle may read, on
// the way, an entry that another thread frees or has just taken for another handle. It sees a
// handle that is not its own, and goes on. Entries of freed handles are used again.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "mpi/functions.hpp"

namespace ropewalk::preload {

// Entry has a member std::atomic<mpi::Word> handle, 0 while it is not in use.
template <class Entry>
class HandleTable {
 public:
  // Null where none is known. The handle is the caller's: nobody frees it meanwhile.
  Entry* find(mpi::Word handle) const noexcept {
    // Acquire pairs with the release in insert(): the entry is filled.
    Entry* entry = near(handle).load(std::memory_order_acquire);
    if (entry != nullptr && entry->handle.load(std::memory_order_relaxed) == handle) [[likely]] {
      return entry;
    }
    return find_far(handle);
  }

  Entry& insert(mpi::Word handle) {
    const std::lock_guard lock(mutex_);
    if (unused_.empty()) {
      unused_.push_back(new Entry);
    }
    Entry* entry = unused_.back();
    unused_.pop_back();
    entry->handle.store(handle, std::memory_order_relaxed);
    used_.push_back(entry);
    near(handle).store(entry, std::memory_order_release);
    return *entry;
  }

  void erase(Entry& entry) noexcept {
    const std::lock_guard lock(mutex_);
    Entry* self = &entry;
    near(entry.handle.load(std::memory_order_relaxed))
        .compare_exchange_strong(self, nullptr, std::memory_order_relaxed);
    entry.handle.store(0, std::memory_order_relaxed);
    std::erase(used_, &entry);
    unused_.push_back(&entry);
  }

 private:
  using Place = std::atomic<Entry*>;
  // Fibonacci hashing, as in mpi/handle_map.hpp. Two handles of one place take turns in it.
  Place& near(mpi::Word handle) const noexcept {
    return places_[static_cast<std::size_t>((handle * 0x9e3779b97f4a7c15ULL) >> 54)];
  }

  Entry* find_far(mpi::Word handle) const noexcept {
    const std::lock_guard lock(mutex_);
    for (Entry* entry : used_) {
      if (entry->handle.load(std::memory_order_relaxed) != handle) continue;
      near(handle).store(entry, std::memory_order_release);
      return entry;
    }
    return nullptr;
  }

  mutable std::array<Place, 1024> places_{};
  mutable std::mutex mutex_;
  std::vector<Entry*> used_;
  std::vector<Entry*> unused_;
};

}  // namespace ropewalk::preload
