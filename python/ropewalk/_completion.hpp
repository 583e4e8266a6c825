// A completion stands for the end of a call that another thread makes. A caller may wait for it,
// ask whether it has come, or have a Python function called when it comes.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <vector>

namespace ropewalk::python {

// Returns false where the interpreter is ending or has ended. A thread that takes the GIL then is
// ended inside of C++, which aborts the process, or never comes back (Python 3.14).
bool may_take_gil() noexcept;

class Completion {
 public:
  // Says that the call is done. Whoever has made the call calls this, with what the call has
  // thrown, or null. Takes the GIL only where a function is to be called, which none is once the
  // interpreter is ending.
  void finish(std::exception_ptr error) noexcept;

  bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  // Waits until the call is done. The caller must not hold the GIL.
  void wait();
  // Throws what the call has thrown. May be called only when the call is done.
  void check() const;
  // Calls the function without arguments when the call is done, or at once if it is done already.
  void tell(nanobind::object function);

 private:
  static void call_all(std::vector<PyObject*> functions) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  // finish() sets this with release after it has set error_; done() pairs with it by acquire.
  std::atomic<bool> done_{false};
  std::exception_ptr error_;
  // These are references. tell() adds one with the GIL and the mutex held.
  std::vector<PyObject*> functions_;
};

}  // namespace ropewalk::python
