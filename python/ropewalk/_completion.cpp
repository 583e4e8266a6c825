#include "_completion.hpp"

#include <utility>

namespace nb = nanobind;

namespace ropewalk::python {

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
