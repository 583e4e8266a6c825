// What a fork does to an arena, and the lock around it.
#include <vector>

#include "memory/arena_hold.hpp"
#include "memory/ladder.hpp"

namespace ropewalk::memory {
namespace {

// The copy is ordinary memory: the pool was sized for the parent, and a child that only calls exec
// should not pay for huge pages.
const Mechanism& child_mechanism(const Mechanism& parent) {
  const bool small = parent.source == PageSource::shmem_small;
  return small ? parent : mechanism(PageSource::shmem_huge);
}

}  // namespace

namespace {

// Not through __tls_get_addr, which may allocate.
__attribute__((tls_model("initial-exec"))) constinit thread_local bool inside = false;

}  // namespace

Inside::Inside() noexcept : before_(inside) { inside = true; }
Inside::~Inside() { inside = before_; }
bool Inside::now() noexcept { return inside; }

void ArenaState::lock() noexcept {
  inside = true;
  mutex_.lock();
  segment_->leave_to_child(true);
}

void ArenaState::unlock() noexcept {
  segment_->leave_to_child(false);
  mutex_.unlock();
  inside = false;
}

bool ArenaState::orphaned() const noexcept { return life_ && *life_.data() == std::byte{0}; }

bool ArenaState::copy_in_child() noexcept {
  if (life_) *life_.data() = std::byte{1};
  std::vector<Extent> blocks;
  blocks.reserve(live_.size());
  for (const auto& [offset, bytes] : live_) blocks.push_back({offset, bytes});
  if (!segment_->copy(blocks, child_mechanism(segment_->how()))) return false;
  strict_ = false;
  flush_cache();
  return true;
}

void ArenaState::drop_in_child() noexcept {
  if (life_) *life_.data() = std::byte{1};
  segment_->drop(child_mechanism(segment_->how()));
  strict_ = false;
  live_.clear();
  cache_.clear();
  free_.clear();
  counters_.live_bytes = 0;
  add_reason(downgrade_, segment_->how().source,
             "this process was forked without the memory of its parent");
}

}  // namespace ropewalk::memory
