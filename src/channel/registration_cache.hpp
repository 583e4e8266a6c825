// Which memory of other processes is attached here, so that it is attached once and not in every
// call (Hashmi et al. 2018, "Registration Cache for XPMEM based Communication").
//
// As the paper has it: a tree of intervals for each peer, searched in O(log n); deregistration is
// lazy, when the cache is full or the peer is let go; the oldest goes first (FIFO did better than
// LRU there; either may be asked for); 4096 entries by default. What the paper leaves open:
// - Intervals consist of whole pages and do not overlap. A request inside one is a hit. A request
//   that overlaps some is attached anew as the union with them, which replaces them: buffers that
//   grow, or blocks of one buffer, end up as one entry, and one look in an ordered map decides.
// - Entries in use are not detached: they are pinned from acquire() to release(). Where all are
//   pinned the cache holds more entries than it should until they are released.
// - Entries never go stale: an attachment shows the memory that the owner has at an address at the
//   time of the access (xpmem.hpp).
//
// One cache a process, for all communicators and threads: the kernel allows a process 65530
// mappings in all, and pages that are attached stay in memory. Guarded by one lock; acquire()
// and release() of a hit take 35 to 110 ns together (full cache), against microseconds for the
// smallest buffers that are attached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <span>

#include "channel/provider.hpp"
#include "ropewalk/registration.hpp"

namespace ropewalk::channel {

struct CacheCounts {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;     // attached, or refused
  std::uint64_t evictions = 0;  // detached to make room; not: replaced by a larger one
  std::uint64_t entries = 0;    // attached now
};

class RegistrationCache {
 public:
  static constexpr std::size_t default_capacity = 4096;  // the optimum of the paper

  // The provider outlives the cache. `capacity` is the number of entries over all peers, at least
  // 1.
  RegistrationCache(Provider& provider, std::size_t capacity, Eviction eviction = Eviction::fifo);
  ~RegistrationCache();  // nothing is pinned any more
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  Provider& provider() const noexcept { return provider_; }

  // Opens a peer whose memory will be acquired. Openings are counted: entries live until the peer
  // was closed as often. Returns false where the provider does not allow it.
  bool open(Segment);
  void close(Segment) noexcept;  // nothing of it is pinned, by the one who closes it

  struct Entry;
  struct Registration {
    std::byte* local = nullptr;  // where `address` is seen here; null where it cannot be attached
    Entry* entry = nullptr;
  };
  // `bytes` > 0 at `address` in the process of an open segment, attached until it is released.
  Registration acquire(Segment, std::uint64_t address, std::size_t bytes);
  void release(std::span<Entry* const>) noexcept;

  CacheCounts counts() const;

 private:
  using Entries = std::list<Entry>;
  struct Peer {
    int users = 0;
    std::map<std::uint64_t, Entries::iterator> intervals;  // by first address; none overlap
  };
  struct Interval {
    std::uint64_t begin;
    std::uint64_t end;
  };

  Entry* find(Peer&, const Interval&) noexcept;
  Interval with_overlapping(const Peer&, Interval) const;
  std::byte* attach(Segment, const Interval&);
  void make_room(std::size_t capacity) noexcept;
  void retire(Entries::iterator) noexcept;
  void detach(Entries&, Entries::iterator) noexcept;

  Provider& provider_;
  const std::size_t capacity_;
  const Eviction eviction_;
  const std::uint64_t page_bytes_;
  mutable std::mutex mutex_;
  std::map<Segment, Peer> peers_;
  Entries entries_;  // in the trees of the peers; the first to go first
  Entries retired_;  // replaced or closed while pinned: detached when released
  CacheCounts counts_;
};

struct RegistrationCache::Entry {
  Segment segment;
  std::uint64_t begin;
  std::uint64_t end;
  std::byte* local;
  int pins;
  bool retired;
  Entries::iterator self;
};

}  // namespace ropewalk::channel
