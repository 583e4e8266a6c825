// The inside of an Arena: a segment cut into blocks. Everything but the range queries is under one
// lock, also while pages are made: blocks share 2 MiB pages with their neighbours, and a second
// thread's pages would only wait for the same memory bandwidth.
//
// Its own bookkeeping comes from malloc, which may be ours: while a thread is inside, its
// allocations are to come from elsewhere (busy).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/arena_backend.hpp"
#include "memory/block_cache.hpp"
#include "memory/fork_policy.hpp"
#include "memory/free_space.hpp"
#include "memory/segment.hpp"
#include "memory/touch_history.hpp"
#include "os/mapping.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::memory {

// This thread is inside an arena, or makes one, as long as an object of this type lives.
class Inside {
 public:
  Inside() noexcept;
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool now() noexcept;

 private:
  bool before_;
};

class ArenaState : public ForkParticipant, public ArenaBackend {
 public:
  // With `probe_later`, what the pages will be is found out when somebody needs to know: a program
  // that only calls malloc need not.
  explicit ArenaState(const MemoryOptions& options, bool probe_later = false);
  ArenaState(const ArenaState&) = delete;
  ArenaState& operator=(const ArenaState&) = delete;
  ~ArenaState() override;

  const ArenaRange& range() const noexcept override { return segment_->range(); }
  void* allocate(std::size_t bytes, std::size_t alignment) override;
  void deallocate(void* address) noexcept override;
  std::size_t usable_bytes(const void* address) const override;
  void trim() noexcept override;
  void settle(const void* address, std::size_t bytes) noexcept override;
  int descriptor() const noexcept override;
  PageSource source() noexcept override;
  ArenaStatistics statistics() const override;
  std::string downgrade() override;

  // What the malloc library needs, see process_arena.hpp.
  void* allocate_untouched(std::size_t bytes, std::size_t alignment, bool& fresh) noexcept;
  void* allocate_to_grow(std::size_t bytes) noexcept;
  std::size_t block_bytes(const void* address) const noexcept;
  bool resize(void* address, std::size_t bytes) noexcept;
  void clear(void* address, std::size_t bytes) noexcept;
  void bound_cache(std::size_t bytes) noexcept;
  bool orphaned() const noexcept;
  int discard(void* address, std::size_t bytes, bool locked_too) noexcept;
  void watch(const Watch* watch) noexcept { segment_->watch(watch); }

  const void* base() const noexcept override { return segment_->base(); }
  void lock() noexcept override;
  void unlock() noexcept override;
  bool has_data() const noexcept override { return !live_.empty(); }
  bool copy_in_child() noexcept override;
  void drop_in_child() noexcept override;
  bool peers_can_map(const void* address, std::size_t bytes) const noexcept override {
    return range().contains(address, bytes);
  }

 private:
  class Hold;  // of the lock, inside

  bool open_hugetlb_whole();
  void open_growing(PageSource source);
  void open_best(bool probe_later);
  bool probe();
  void probe_best();
  void ensure_probed() noexcept;
  [[noreturn]] void fail(std::size_t bytes, const std::string& reason) const;
  std::size_t offset(const void* address) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - segment_->base());
  }

  std::optional<Extent> find_extent(std::size_t bytes, std::size_t alignment, std::string& refused);
  std::optional<Extent> take_free(std::size_t bytes, std::size_t alignment);
  std::string grow_for(std::size_t bytes, std::size_t alignment);
  void* use(Extent block);
  void* use_untouched(std::optional<Extent> block);
  void* allocate_locked(std::size_t bytes, std::size_t alignment, bool& expect_whole,
                        bool& fresh) noexcept;
  bool widen(Extent block, std::size_t bytes);
  bool leaves_room(std::size_t more) const noexcept;
  void flush_cache();
  void retire(Extent block);
  Extent forget(void* address);
  void give_back(void* address);

  MemoryOptions options_;
  bool explicit_range_;  // reserve_bytes was given, not guessed
  mutable std::mutex mutex_;
  std::unique_ptr<Segment> segment_;
  os::Mapping life_;  // one byte that is 1, and 0 in a child cloned past the fork handlers
  bool one_node_;     // of the machine: it does not matter which thread touches a page first
  bool needs_probe_ = false;
  TouchHistory touches_;
  bool strict_ = false;  // nothing but huge pages is handed out
  FreeSpace free_;
  BlockCache cache_;
  std::unordered_map<std::size_t, std::size_t> live_;              // offset -> bytes
  std::unordered_map<std::size_t, std::size_t>::node_type spare_;  // of the last that was freed
  ArenaStatistics counters_;
  std::string downgrade_;
};

}  // namespace ropewalk::memory
