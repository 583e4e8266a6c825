// The end of a call that another thread makes: waited for, asked for, or told to a function of
// Python's.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <vector>

namespace ropewalk::python {

class Completion {
 public:
  // By whoever has made the call; error: what it has thrown, or null. Takes the GIL only where a
  // function is to be called.
  void finish(std::exception_ptr error) noexcept;

  bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  void wait();  // without the GIL
  // Throws what the call has thrown; only where it is done.
  void check() const;
  // Calls the function without arguments when the call is done: at once where it is.
  void tell(nanobind::object function);

 private:
  static void call_all(std::vector<PyObject*> functions) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> done_{false};  // released after error_ is set
  std::exception_ptr error_;
  std::vector<PyObject*> functions_;  // references; changed with the GIL and the mutex held
};

}  // namespace ropewalk::python
