// This file holds the public face of Arena, and the arena of this process.
#include <algorithm>
#include <atomic>

#include "memory/arena_state.hpp"
#include "memory/process_arena.hpp"
#include "memory/watch.hpp"

namespace ropewalk {

struct Arena::State {
  explicit State(std::unique_ptr<memory::ArenaBackend> behind)
      : backend(std::move(behind)), range(backend->range()) {}
  std::unique_ptr<memory::ArenaBackend> backend;
  const memory::ArenaRange& range;
};

namespace {

// It is registered last and removed first, so that a fork never meets half an arena.
class RegisteredArena final : public memory::ArenaState {
 public:
  explicit RegisteredArena(const MemoryOptions& options) : ArenaState(options) {
    memory::add_participant(*this);
  }
  RegisteredArena(const RegisteredArena&) = delete;
  RegisteredArena& operator=(const RegisteredArena&) = delete;
  ~RegisteredArena() override { memory::remove_participant(*this); }
};

}  // namespace

Arena::Arena(const MemoryOptions& options)
    : state_(std::make_unique<State>(std::make_unique<RegisteredArena>(options))) {}
Arena::Arena(std::unique_ptr<State> state) : state_(std::move(state)) {}
Arena::~Arena() = default;

// It is never destroyed: objects of static lifetime free their buffers after us.
Arena& Arena::process() {
  static std::atomic<Arena*> instance{nullptr};
  // Acquire pairs with the release below: the object is complete.
  Arena* arena = instance.load(std::memory_order_acquire);
  if (arena != nullptr) return *arena;
  // Threads that come here at once make an object each, for one arena, and the first keeps its own:
  // a child of fork would find a lock held here.
  std::unique_ptr<Arena> made(
      new Arena(std::make_unique<State>(memory::open_process_arena(memory::find_process_arena()))));
  if (instance.compare_exchange_strong(arena, made.get(), std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *arena;
}

void* Arena::allocate(std::size_t bytes, std::size_t alignment) {
  return state_->backend->allocate(bytes, alignment);
}
void Arena::deallocate(void* address) noexcept {
  if (address != nullptr) state_->backend->deallocate(address);
}
std::size_t Arena::usable_bytes(const void* address) const {
  return state_->backend->usable_bytes(address);
}
void Arena::trim() noexcept { state_->backend->trim(); }

void Arena::make_huge(const void* address, std::size_t bytes) noexcept {
  const memory::ArenaRange& range = state_->range;
  if (bytes == 0 || !range.contains(address, bytes) || range.settled(address, bytes)) return;
  state_->backend->settle(address, bytes);
}

void Arena::note_communicated(const void* address, std::size_t bytes) noexcept {
  const memory::ArenaRange& range = state_->range;
  // Acquire pairs with the release of Segment::watch: the object is complete.
  const memory::BlockWatch* watch = range.watch.load(std::memory_order_acquire);
  if (watch == nullptr) return;
  if (range.contains(address, std::max<std::size_t>(bytes, 1))) {
    if (bytes >= memory::BlockWatch::least_inside) watch->note_inside(range, address, bytes);
  } else if (bytes >= memory::BlockWatch::least_outside) {
    watch->seen_outside(address, bytes);
  }
}

bool Arena::contains(const void* address, std::size_t bytes) const noexcept {
  return state_->range.contains(address, bytes);
}
std::size_t Arena::offset(const void* address) const noexcept {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - base());
}
std::byte* Arena::base() const noexcept { return state_->range.base; }
std::size_t Arena::reserved_bytes() const noexcept { return state_->range.reserved; }
std::size_t Arena::committed_bytes() const noexcept {
  return state_->range.committed.load(std::memory_order_acquire);
}
int Arena::descriptor() const noexcept { return state_->backend->descriptor(); }
PageSource Arena::source() const noexcept { return state_->backend->source(); }
ArenaStatistics Arena::statistics() const { return state_->backend->statistics(); }
std::string Arena::downgrade() const { return state_->backend->downgrade(); }

}  // namespace ropewalk
