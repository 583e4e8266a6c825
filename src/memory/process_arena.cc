#include "memory/process_arena.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

#include "memory/arena_state.hpp"
#include "memory/fork_policy.hpp"
#include "memory/malloc_blocks.hpp"
#include "memory/options.hpp"
#include "os/cancellation.hpp"

namespace ropewalk::memory {
namespace {

// ---- the arena of this copy ---------------------------------------------------------------------

// It is never destroyed: objects of static lifetime free their buffers after us, and peers read to
// the end.
ProcessArena table_of(const ArenaRange& range) noexcept;
struct OwnArena {
  ArenaState state{environment_options(), true};
  MallocBlocks blocks{state};
  const ProcessArena table = table_of(state.range());
};
std::atomic<OwnArena*> instance{nullptr};

void report(ArenaFailure* failure, ErrorCode code, const char* text) noexcept {
  if (failure == nullptr) return;
  failure->code = code;
  std::strncpy(failure->text, text, sizeof failure->text - 1);
}

// No exception leaves this function; it returns false instead.
template <class Body>
bool guarded(ArenaFailure* failure, const Body& body) noexcept {
  try {
    body();
    return true;
  } catch (const Error& error) {
    report(failure, error.code(), error.what());
  } catch (const std::exception& error) {
    report(failure, ErrorCode::memory, error.what());
  } catch (...) {
    report(failure, ErrorCode::memory, "arena: an unknown exception");
  }
  return false;
}

// It is registered last, so that a fork never meets half an arena.
OwnArena* make() {
  auto arena = std::make_unique<OwnArena>();
  add_participant(arena->state);
  return arena.release();
}

OwnArena* own(ArenaFailure* failure) noexcept {
  // Acquire pairs with the release below: the arena is complete.
  OwnArena* arena = instance.load(std::memory_order_acquire);
  if (arena != nullptr) return arena;
  if (Inside::now()) return nullptr;  // asked by malloc, from within the making
  const Inside inside;
  const os::NotCancelled whole;
  const std::lock_guard lock(arena_making());
  arena = instance.load(std::memory_order_relaxed);
  if (arena == nullptr && guarded(failure, [&] { arena = make(); })) {
    instance.store(arena, std::memory_order_release);
  }
  return arena;
}

// The functions of the table are called after the arena was made.
ArenaState& state() noexcept { return instance.load(std::memory_order_acquire)->state; }
MallocBlocks& blocks() noexcept { return instance.load(std::memory_order_acquire)->blocks; }

bool allocate(std::size_t bytes, std::size_t alignment, void** out, ArenaFailure* failure) {
  return guarded(failure, [&] { *out = state().allocate(bytes, alignment); });
}
bool usable_bytes(const void* address, std::size_t* out, ArenaFailure* failure) {
  return guarded(failure, [&] { *out = state().usable_bytes(address); });
}
bool statistics(ArenaStatistics* out, ArenaFailure* failure) {
  return guarded(failure, [&] { *out = state().statistics(); });
}
std::size_t downgrade(char* text, std::size_t room) {
  std::string all;
  guarded(nullptr, [&] { all = state().downgrade(); });
  if (room > 0) {
    const std::size_t part = std::min(all.size(), room - 1);
    std::memcpy(text, all.data(), part);
    text[part] = '\0';
  }
  return all.size();
}

ProcessArena table_of(const ArenaRange& range) noexcept {
  return {
      .range = &range,
      .allocate = allocate,
      .deallocate = [](void* address) { state().deallocate(address); },
      .usable_bytes = usable_bytes,
      .trim = [] { state().trim(); },
      .settle = [](const void* address, std::size_t bytes) { state().settle(address, bytes); },
      .descriptor = [] { return state().descriptor(); },
      .source = [] { return state().source(); },
      .statistics = statistics,
      .downgrade = downgrade,
      .allocate_untouched = [](std::size_t bytes, std::size_t alignment,
                               bool* fresh) { return blocks().allocate(bytes, alignment, *fresh); },
      .block_bytes = [](const void* address) { return state().block_bytes(address); },
      .resize = [](void* address, std::size_t bytes) { return blocks().resize(address, bytes); },
      .allocate_to_grow = [](std::size_t bytes) { return blocks().allocate_to_grow(bytes); },
      .clear = [](void* address, std::size_t bytes) { blocks().clear(address, bytes); },
      .bound_cache = [](std::size_t bytes) { blocks().bound_cache(bytes); },
      .busy = [] { return Inside::now(); },
      .orphaned = [] { return state().core().orphaned(); },
      .discard = [](void* address, std::size_t bytes,
                    bool locked_too) { return blocks().discard(address, bytes, locked_too); },
      .watch = [](const BlockWatch* watch) { state().watch(watch); }};
}

// ---- the arena as its table shows it, of this copy or another -----------------------------------

[[noreturn]] void raise(const ArenaFailure& failure) { throw Error(failure.code, failure.text); }

// As a participant, it is only asked which memory peers can map, since its owner does what a fork
// needs.
class TableArena final : public ArenaBackend, public ForkParticipant {
 public:
  explicit TableArena(const ProcessArena& arena) : arena_(arena) { add_participant(*this); }
  TableArena(const TableArena&) = delete;
  TableArena& operator=(const TableArena&) = delete;
  ~TableArena() override { remove_participant(*this); }

  const ArenaRange& range() const noexcept override { return *arena_.range; }
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    void* found = nullptr;
    ArenaFailure failure;
    if (!arena_.allocate(bytes, alignment, &found, &failure)) raise(failure);
    return found;
  }
  void deallocate(void* address) noexcept override { arena_.deallocate(address); }
  std::size_t usable_bytes(const void* address) const override {
    std::size_t bytes = 0;
    ArenaFailure failure;
    if (!arena_.usable_bytes(address, &bytes, &failure)) raise(failure);
    return bytes;
  }
  void trim() noexcept override { arena_.trim(); }
  void settle(const void* address, std::size_t bytes) noexcept override {
    arena_.settle(address, bytes);
  }
  int descriptor() const noexcept override { return arena_.descriptor(); }
  PageSource source() noexcept override { return arena_.source(); }
  ArenaStatistics statistics() const override {
    ArenaStatistics result;
    ArenaFailure failure;
    if (!arena_.statistics(&result, &failure)) raise(failure);
    return result;
  }
  std::string downgrade() override {
    std::string text(arena_.downgrade(nullptr, 0) + 1, '\0');
    const std::size_t length = arena_.downgrade(text.data(), text.size());
    text.resize(std::min(length, text.size() - 1));
    return text;
  }

  const void* base() const noexcept override { return arena_.range->base; }
  bool has_data() const noexcept override { return false; }
  bool copy_in_child() noexcept override { return true; }
  void drop_in_child() noexcept override {}
  bool peers_can_map(const void* address, std::size_t bytes) const noexcept override {
    return arena_.range->contains(address, bytes);
  }

 private:
  const ProcessArena& arena_;
};

}  // namespace

ProcessArenaFunction* find_process_arena() noexcept {
  void* found = dlsym(RTLD_DEFAULT, process_arena_symbol);
  return found != nullptr ? reinterpret_cast<ProcessArenaFunction*>(found)
                          : ropewalk_process_arena_v2;
}

std::unique_ptr<ArenaBackend> open_process_arena(ProcessArenaFunction* function) {
  ArenaFailure failure;
  const ProcessArena* arena = function(&failure);
  if (arena == nullptr) raise(failure);
  return std::make_unique<TableArena>(*arena);
}

}  // namespace ropewalk::memory

const ropewalk::memory::ProcessArena* ropewalk_process_arena_v2(
    ropewalk::memory::ArenaFailure* failure) {
  const ropewalk::memory::OwnArena* arena = ropewalk::memory::own(failure);
  return arena == nullptr ? nullptr : &arena->table;
}
