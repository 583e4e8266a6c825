#include "messages/engine_keeper.hpp"

#include <sched.h>

#include <algorithm>
#include <cstddef>

#include "messages/engine.hpp"
#include "mpi/progress.hpp"

namespace ropewalk::messages {

__attribute__((tls_model("initial-exec"))) constinit thread_local EnginesOfThread engines_of_thread;

namespace {

// Acquire pairs with the release in give_back(): the engine is as the last holder left it.
bool try_take(KeptEngine& kept) noexcept {
  return !kept.busy.test_and_set(std::memory_order_acquire);
}
void take(KeptEngine& kept) noexcept {
  while (!try_take(kept)) sched_yield();  // a thread that moves it on needs its core to end
}
void give_back(KeptEngine& kept) noexcept { kept.busy.clear(std::memory_order_release); }

// In a child of fork, what its parent has made is kept there.
bool is_kept_here(const KeptEngine& kept) noexcept {
  return kept.engine != nullptr && kept.fork.same_process() &&
         kept.thread.load(std::memory_order_relaxed) == &engines_of_thread;
}

// A thread that ends keeps nothing: the next one may have its address.
struct EndOfThread {
  ~EndOfThread() {
    EnginesOfThread& own = engines_of_thread;
    for (const auto& kept : *own.engines) {
      if (!kept->fork.same_process()) continue;
      take(*kept);
      if (is_kept_here(*kept)) kept->thread.store(nullptr, std::memory_order_relaxed);
      give_back(*kept);
    }
    delete own.engines;
    own = {.engines = nullptr, .has_ended = true};
  }
};

// Errors are left to the calls of the engine itself, which meet them again.
void move_on(MessageEngine& engine) noexcept {
  try {
    if (engine.has_messages_under_way()) engine.advance();
  } catch (...) {
  }
}

// What a thread calls while it waits for anything.
void look_at_engines() noexcept {
  const EnginesOfThread& own = engines_of_thread;
  if (own.engines == nullptr) return;
  for (std::size_t i = 0; i < own.engines->size();) {
    KeptEngine& kept = *(*own.engines)[i];
    if (!try_take(kept)) {  // another thread takes it over
      ++i;
      continue;
    }
    const bool is_here = is_kept_here(kept);
    if (is_here && !kept.waits_itself) move_on(*kept.engine);
    give_back(kept);
    if (is_here) {
      ++i;
    } else {
      own.engines->erase(own.engines->begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

// Returns false where this thread cannot keep it: it ends, or there is no memory.
bool add_to_thread(const std::shared_ptr<KeptEngine>& kept) noexcept {
  EnginesOfThread& own = engines_of_thread;
  if (own.has_ended) return false;
  try {
    if (own.engines == nullptr) {
      own.engines = new std::vector<std::shared_ptr<KeptEngine>>;
      static thread_local const EndOfThread end;
      mpi::progress_also(&look_at_engines);
    }
    if (std::ranges::find(*own.engines, kept) == own.engines->end()) own.engines->push_back(kept);
  } catch (...) {  // its messages move in its own calls alone
    return false;
  }
  return true;
}

}  // namespace

EngineKeeper::EngineKeeper(MessageEngine& engine) : kept_(std::make_shared<KeptEngine>()) {
  kept_->engine = &engine;
}

void EngineKeeper::end() noexcept {
  if (!kept_->fork.same_process()) return;
  take(*kept_);
  const bool is_here = is_kept_here(*kept_);
  kept_->engine = nullptr;
  give_back(*kept_);
  if (is_here && engines_of_thread.engines != nullptr) {
    std::erase(*engines_of_thread.engines, kept_);
  }
}

// In a child of fork nobody keeps what its parent has made.
void EngineKeeper::take_over() noexcept {
  if (!kept_->fork.same_process()) return;
  take(*kept_);
  kept_->thread.store(&engines_of_thread, std::memory_order_relaxed);
  if (!add_to_thread(kept_)) kept_->thread.store(nullptr, std::memory_order_relaxed);
  give_back(*kept_);
}

}  // namespace ropewalk::messages
