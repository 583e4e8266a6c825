// What a child of fork must know: which threads and connections belong to its parent.
#pragma once

#include <atomic>
#include <memory>

namespace ropewalk::os {

// Rises in every child of a fork: threads made under an earlier number are not there any more. It
// is at least 1.
unsigned fork_generation() noexcept;

// Remembers the process in which an object was made.
class ForkCheck {
 public:
  // Returns false in a child of fork, to which the object's threads did not come along.
  bool same_process() const noexcept { return generation_ == fork_generation(); }

 private:
  unsigned generation_ = fork_generation();
};

// An object that each process makes for itself, at its first use: a child of fork leaves that of
// its parent alone, which another thread may have locked or half changed. It is never destroyed,
// since objects of static lifetime may need it to the end.
template <class Object>
class PerProcess {
 public:
  Object& get() {
    // Acquire pairs with the release of the thread that made it.
    Made* found = made_.load(std::memory_order_acquire);
    while (found == nullptr || !found->fork.same_process()) {
      auto made = std::make_unique<Made>();
      if (made_.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) {
        found = made.release();
      }
    }
    return found->object;
  }

 private:
  struct Made {
    ForkCheck fork;
    Object object;
  };
  std::atomic<Made*> made_{nullptr};
};

}  // namespace ropewalk::os
