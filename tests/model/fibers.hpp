// Ranks as fibers: each has a stack of its own and runs until it yields.
#pragma once

#include <functional>
#include <memory>
#include <vector>

namespace ropewalk::model {

// A fiber runs its body once a start(). It is resumed from outside, and yields from inside.
class Fibers {
 public:
  explicit Fibers(int count);
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // The next resume() enters `body`.
  void start(int fiber, std::function<void()> body);
  // Returns when the fiber yields or ends.
  void resume(int fiber);
  bool ended(int fiber) const;
  const void* end_of_stack(int fiber) const;
  // Ends the fiber where it stands: its frames are left without destructors, so they must own
  // nothing. (Exceptions would not do: flags are stored in functions that are noexcept.)
  void drop(int fiber);

  // Called by the fiber that runs.
  void yield();
  [[noreturn]] void drop_self();

 private:
  struct Fiber;
  static void prepare(Fiber& fiber);
  static void enter();
  void run(Fiber& fiber);
  void switch_between(Fiber& from, Fiber& to);

  std::unique_ptr<Fiber> outside_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* running_ = nullptr;
};

}  // namespace ropewalk::model
