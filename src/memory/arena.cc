// The public face of Arena, and the arena of this process.
#include <atomic>
#include <mutex>

#include "memory/arena_state.hpp"
#include "memory/options.hpp"

namespace ropewalk {

// Registered last and removed first, so that a fork never meets half an arena.
struct Arena::State : memory::ArenaState {
  explicit State(const MemoryOptions& options) : ArenaState(options) {
    memory::add_participant(*this);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() override { memory::remove_participant(*this); }
};

Arena::Arena(const MemoryOptions& options) : state_(std::make_unique<State>(options)) {}
Arena::~Arena() = default;

// Never destroyed: objects of static lifetime free their buffers after us, and peers read to the
// end.
Arena& Arena::process() {
  static std::atomic<Arena*> instance{nullptr};
  static std::mutex making;
  // Acquire pairs with the release below: the arena is complete.
  Arena* arena = instance.load(std::memory_order_acquire);
  if (arena != nullptr) return *arena;
  const std::lock_guard lock(making);
  arena = instance.load(std::memory_order_relaxed);
  if (arena == nullptr) {
    arena = new Arena(memory::environment_options());
    instance.store(arena, std::memory_order_release);
  }
  return *arena;
}

void* Arena::allocate(std::size_t bytes, std::size_t alignment) {
  return state_->allocate(bytes, alignment);
}
void Arena::deallocate(void* address) noexcept { state_->deallocate(address); }
std::size_t Arena::usable_bytes(const void* address) const { return state_->usable_bytes(address); }
void Arena::trim() noexcept { state_->trim(); }

bool Arena::contains(const void* address, std::size_t bytes) const noexcept {
  return state_->contains(address, bytes);
}
std::size_t Arena::offset(const void* address) const noexcept {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - base());
}
std::byte* Arena::base() const noexcept { return state_->segment().base(); }
std::size_t Arena::reserved_bytes() const noexcept { return state_->segment().reserved(); }
std::size_t Arena::committed_bytes() const noexcept { return state_->segment().committed(); }
int Arena::descriptor() const noexcept { return state_->segment().descriptor(); }
PageSource Arena::source() const noexcept { return state_->source(); }
ArenaStatistics Arena::statistics() const { return state_->statistics(); }
std::string Arena::downgrade() const { return state_->downgrade(); }

}  // namespace ropewalk
