// Finds the drop-in's entry for a handle of MPI: one cache line and the entry itself, no lock.
//
// An entry is filled before anybody can find it: take(), fill, publish(). Entries are never given
// back to the allocator: a thread that looks up its own handle may read, on the way, an entry that
// another thread frees or fills for another handle. It finds another handle there than its own, and
// goes on. Entries of freed handles are used again.
//
// A few entries are made before they are needed, the first of them in the table itself: so a rank
// that has run out of memory still has entries for its next handles, and decides as the others do.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

#include "mpi/functions.hpp"

namespace ropewalk::preload {

// Entry has a member std::atomic<mpi::Word> handle, 0 while it is not in use.
template <class Entry>
class HandleTable {
 public:
  // Returns null where none is known. The handle is the caller's: nobody frees it meanwhile.
  Entry* find(mpi::Word handle) const noexcept {
    Entry* entry = find_near(handle);
    return entry != nullptr ? entry : find_far(handle);
  }

  // The same without the lock: may miss an entry where many handles share one set.
  Entry* find_near(mpi::Word handle) const noexcept {
    for (const Place& place : set_of(handle).places) {
      if (place.handle.load(std::memory_order_relaxed) != handle) continue;
      // Acquire pairs with the release in put(): it is an entry, whosever.
      Entry* entry = place.entry.load(std::memory_order_acquire);
      // Acquire pairs with the release in publish(): the entry is filled, though it may have come
      // to this place for another handle before.
      if (entry != nullptr && entry->handle.load(std::memory_order_acquire) == handle) [[likely]] {
        return entry;
      }
    }
    return nullptr;
  }

  // An entry to fill, which nobody finds. One that is not published is given back by erase().
  // std::bad_alloc where there is no memory, and none is left of those made before.
  Entry& take() {
    const std::lock_guard lock(mutex_);
    make_spares();
    if (unused_ == nullptr) throw std::bad_alloc();
    --unused_count_;
    return *std::exchange(unused_, unused_->next);
  }

  // The handle is in no other entry: whoever makes entries of one handle makes one at a time.
  void publish(Entry& entry, mpi::Word handle) noexcept {
    const std::lock_guard lock(mutex_);
    Node& node = static_cast<Node&>(entry);
    node.before = nullptr;
    node.next = used_;
    if (used_ != nullptr) used_->before = &node;
    used_ = &node;
    entry.handle.store(handle, std::memory_order_release);  // pairs with the acquire in find()
    put(handle, &entry);
  }

  void erase(Entry& entry) noexcept {
    const std::lock_guard lock(mutex_);
    for (Place& place : set_of(entry.handle.load(std::memory_order_relaxed)).places) {
      if (place.entry.load(std::memory_order_relaxed) != &entry) continue;
      place.entry.store(nullptr, std::memory_order_relaxed);
      place.handle.store(0, std::memory_order_relaxed);
    }
    Node& node = static_cast<Node&>(entry);
    if (entry.handle.load(std::memory_order_relaxed) != 0) unlink(node);
    entry.handle.store(0, std::memory_order_relaxed);
    add_unused(node);
  }

 private:
  struct Node : Entry {
    Node* before = nullptr;  // in the list of nodes in use
    Node* next = nullptr;    // in that list, or in the list of unused nodes
  };
  struct Place {
    std::atomic<mpi::Word> handle{0};
    std::atomic<Entry*> entry{nullptr};
  };
  // A cache line: so many handles of one set are found at once, more take turns.
  struct alignas(64) Set {
    std::array<Place, 4> places;
  };
  static constexpr std::size_t sets = 256;
  static constexpr std::size_t spares = 8;  // kept beside those in use

  // The table's own have no destructor: other static objects may be used after it.
  struct alignas(Node) Room {
    std::byte bytes[sizeof(Node)];
  };

  void add_unused(Node& node) noexcept {
    node.next = std::exchange(unused_, &node);
    ++unused_count_;
  }

  void unlink(Node& node) noexcept {
    (node.before == nullptr ? used_ : node.before->next) = node.next;
    if (node.next != nullptr) node.next->before = node.before;
  }

  void make_spares() noexcept {
    if (!std::exchange(begun_, true)) {
      for (Room& room : first_) add_unused(*new (&room) Node);
    }
    if (unused_count_ >= spares) return;
    if (Node* made = new (std::nothrow) Node) add_unused(*made);
  }

  // Fibonacci hashing, as in mpi/handle_map.hpp: the top 8 bits.
  Set& set_of(mpi::Word handle) const noexcept {
    return sets_[static_cast<std::size_t>((handle * 0x9e3779b97f4a7c15ULL) >> 56)];
  }

  // Under the lock. In between, a reader may see one's handle with another's entry: find_near()
  // looks at the entry's own.
  void put(mpi::Word handle, Entry* entry) const noexcept {
    Set& set = set_of(handle);
    Place* place = &set.places[turn_++ % set.places.size()];
    for (Place& one : set.places) {
      if (one.entry.load(std::memory_order_relaxed) == nullptr) place = &one;
    }
    place->handle.store(handle, std::memory_order_relaxed);
    place->entry.store(entry, std::memory_order_release);  // pairs with find_near()
  }

  Entry* find_far(mpi::Word handle) const noexcept {
    const std::lock_guard lock(mutex_);
    for (Node* node = used_; node != nullptr; node = node->next) {
      if (node->handle.load(std::memory_order_relaxed) != handle) continue;
      put(handle, node);
      return node;
    }
    return nullptr;
  }

  mutable std::array<Set, sets> sets_{};
  mutable std::mutex mutex_;
  mutable std::size_t turn_ = 0;
  Node* used_ = nullptr;
  Node* unused_ = nullptr;
  std::size_t unused_count_ = 0;
  bool begun_ = false;
  std::array<Room, spares> first_;  // entries in it once begun
};

}  // namespace ropewalk::preload
