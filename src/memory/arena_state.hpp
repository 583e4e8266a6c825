// The inside of an Arena: a segment cut into blocks. Everything but the range queries is under one
// lock, also while pages are made: blocks share 2 MiB pages with their neighbours, and a second
// thread's pages would only wait for the same memory bandwidth.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/block_cache.hpp"
#include "memory/fork_policy.hpp"
#include "memory/free_space.hpp"
#include "memory/segment.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::memory {

class ArenaState : public ForkParticipant {
 public:
  explicit ArenaState(const MemoryOptions& options);

  void* allocate(std::size_t bytes, std::size_t alignment);
  void deallocate(void* address) noexcept;
  std::size_t usable_bytes(const void* address) const;
  void trim() noexcept;
  bool contains(const void* address, std::size_t bytes) const noexcept;
  const Segment& segment() const noexcept { return *segment_; }
  PageSource source() const;
  ArenaStatistics statistics() const;
  std::string downgrade() const;

  const void* base() const noexcept override { return segment_->base(); }
  void lock() noexcept override { mutex_.lock(); }
  void unlock() noexcept override { mutex_.unlock(); }
  bool has_data() const noexcept override { return !live_.empty(); }
  bool copy_in_child() noexcept override;
  void drop_in_child() noexcept override;
  bool peers_can_map(const void* address, std::size_t bytes) const noexcept override {
    return contains(address, bytes);
  }

 private:
  bool open_hugetlb_whole();
  void open_growing(PageSource source);
  void open_best();
  bool probe();
  [[noreturn]] void fail(std::size_t bytes, const std::string& reason) const;

  Extent find_extent(std::size_t bytes, std::size_t alignment);
  bool take_free(std::size_t bytes, std::size_t alignment, Extent& found);
  std::string grow_for(std::size_t bytes, std::size_t alignment);
  void flush_cache();
  void retire(Extent block);

  MemoryOptions options_;
  bool explicit_range_;  // reserve_bytes was given, not guessed
  mutable std::mutex mutex_;
  std::unique_ptr<Segment> segment_;
  bool strict_ = false;  // nothing but huge pages is handed out
  FreeSpace free_;
  BlockCache cache_;
  std::unordered_map<std::size_t, std::size_t> live_;  // offset -> bytes
  ArenaStatistics counters_;
  std::string downgrade_;
};

}  // namespace ropewalk::memory
