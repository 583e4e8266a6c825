// Which thread keeps the messages of an engine moving while it waits for something else.
//
// MPI's rule of progress: a rank that waits in one channel, in a collective or for a window takes
// and gives the bytes of messages that it has begun in other channels. A channel may go from thread
// to thread, one at a time, and its messages are moved by no other thread than the one that has
// made the last call.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "os/fork.hpp"

namespace ropewalk::messages {

class MessageEngine;
struct KeptEngine;

// The engines that a thread keeps. Its address tells one thread from another.
struct EnginesOfThread {
  std::vector<std::shared_ptr<KeptEngine>>* engines = nullptr;  // null: none yet
  bool has_ended = false;                                       // the thread is about to end
};
// The variable is not reached through __tls_get_addr: most calls of a channel ask for its address.
extern __attribute__((
    tls_model("initial-exec"))) constinit thread_local EnginesOfThread engines_of_thread;

struct KeptEngine {
  std::atomic<const void*> thread{nullptr};  // its EnginesOfThread; null: nobody keeps the engine
  std::atomic_flag busy;                     // held while the engine is moved on, or changes hands
  MessageEngine* engine = nullptr;           // null: it is gone
  os::ForkCheck fork;                        // a child of fork has none of its threads
  bool waits_itself = false;                 // known to the thread that keeps it alone
};

// The part of an engine that says so.
class EngineKeeper {
 public:
  EngineKeeper(const EngineKeeper&) = delete;
  EngineKeeper& operator=(const EngineKeeper&) = delete;

  // At the start of every call: another thread that has kept the engine does so no more. Costs a
  // load of what this thread has written last.
  void enter() noexcept {
    // Relaxed: this thread has stored its own address itself. Another's is exchanged under `busy`.
    const void* keeps = kept_->thread.load(std::memory_order_relaxed);
    if (keeps != nullptr && keeps != &engines_of_thread) [[unlikely]] {
      take_over();
    }
  }
  // At the start of a call that leaves a message under way, or asks for one: from here on this
  // thread keeps the engine.
  void keep() noexcept {
    if (kept_->thread.load(std::memory_order_relaxed) != &engines_of_thread) [[unlikely]] {
      take_over();
    }
  }

 protected:
  explicit EngineKeeper(MessageEngine& engine);
  ~EngineKeeper() { end(); }
  // From here on nobody moves the engine on.
  void end() noexcept;

  // While this lives, the engine waits, and moves its messages on by itself.
  class Wait {
   public:
    explicit Wait(EngineKeeper& keeper) noexcept
        : kept_(*keeper.kept_), before_(std::exchange(kept_.waits_itself, true)) {}
    ~Wait() { kept_.waits_itself = before_; }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    KeptEngine& kept_;
    bool before_;
  };

 private:
  void take_over() noexcept;

  std::shared_ptr<KeptEngine> kept_;
};

}  // namespace ropewalk::messages
