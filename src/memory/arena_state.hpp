// The inside of an Arena, as its clients and the fork handlers see it.
#pragma once

#include <cstddef>
#include <string>

#include "memory/arena_backend.hpp"
#include "memory/arena_core.hpp"
#include "memory/fork_policy.hpp"

namespace ropewalk::memory {

class ArenaState : public ForkParticipant, public ArenaBackend {
 public:
  // With `probe_later`, the arena finds out which pages it gets when somebody needs to know: a
  // program that only calls malloc does not.
  explicit ArenaState(const MemoryOptions& options, bool probe_later = false);

  const ArenaRange& range() const noexcept override { return core_.segment().range(); }
  void* allocate(std::size_t bytes, std::size_t alignment) override;
  void deallocate(void* address) noexcept override;
  std::size_t usable_bytes(const void* address) const override;
  void trim() noexcept override;
  void settle(const void* address, std::size_t bytes) noexcept override;
  int descriptor() const noexcept override;
  PageSource source() noexcept override;
  ArenaStatistics statistics() const override;
  std::string downgrade() override;

  // Bytes of the live block that begins there; 0 for none.
  std::size_t block_bytes(const void* address) const noexcept;
  void watch(const BlockWatch* watch) noexcept { core_.segment().watch(watch); }
  ArenaCore& core() noexcept { return core_; }

  const void* base() const noexcept override { return core_.segment().range().base; }
  void lock() noexcept override;
  void unlock() noexcept override;
  bool has_data() const noexcept override { return !core_.live.empty(); }
  bool copy_in_child() noexcept override;
  void drop_in_child() noexcept override;
  bool peers_can_map(const void* address, std::size_t bytes) const noexcept override {
    return range().contains(address, bytes);
  }

 private:
  void probe() noexcept;
  void give_back(const void* address);

  ArenaCore core_;
  const bool keeps_freed_;  // blocks, for the next of their size
};

}  // namespace ropewalk::memory
