#include "_completion.hpp"

#include <dlfcn.h>

#include <utility>

namespace nb = nanobind;

namespace ropewalk::python {

bool may_take_gil() noexcept {
  // Python 3.13 has made it public. The stable ABI of 3.12, for which this is compiled, declares
  // neither.
  static auto* const is_finalizing = [] {
    void* found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (found == nullptr) found = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    return reinterpret_cast<int (*)()>(found);
  }();
  return Py_IsInitialized() != 0 && (is_finalizing == nullptr || is_finalizing() == 0);
}

void Completion::finish(std::exception_ptr error) noexcept {
  std::vector<PyObject*> functions;
  {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    done_.store(true, std::memory_order_release);
    functions.swap(functions_);
    changed_.notify_all();
  }
  if (!functions.empty()) call_all(std::move(functions));
}

void Completion::call_all(std::vector<PyObject*> functions) noexcept {
  if (!may_take_gil()) return;
  const nb::gil_scoped_acquire held;
  for (PyObject* each : functions) {
    const nb::object function = nb::steal(each);
    try {
      function();
    } catch (nb::python_error& thrown) {
      thrown.discard_as_unraisable("ropewalk: telling that a collective is complete");
    }
  }
}

void Completion::wait() {
  if (done()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_.load(std::memory_order_relaxed); });
}

void Completion::check() const {
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void Completion::tell(nb::object function) {
  {
    const std::lock_guard lock(mutex_);
    if (!done_.load(std::memory_order_relaxed)) {
      functions_.push_back(function.release().ptr());
      return;
    }
  }
  function();
}

}  // namespace ropewalk::python
