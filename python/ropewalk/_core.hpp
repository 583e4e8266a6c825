// What the parts of the compiled module share.
#pragma once

#include <nanobind/nanobind.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ropewalk/communicator.hpp"

namespace ropewalk::python {

using release_gil = nanobind::call_guard<nanobind::gil_scoped_release>;

// Set when this rank ends by an uncaught exception: destructors that are collective, or wait for
// messages, would then wait for ranks that may never come.
bool& abandoned();

// An object of the process that has made it. A child of fork has a copy, whose threads and
// messages are the parent's.
class OfProcess {
 public:
  bool is_own() const { return process_ == getpid(); }
  // Destructors must wait for nobody, and end nothing.
  bool is_abandoned() const { return abandoned() || !is_own(); }

 private:
  pid_t process_ = getpid();
};

// Owns a T until it is abandoned, and the Python objects that the T reads and writes. They end
// after it: its destructor may wait for an exchange that is under way, which writes to them. An
// attribute of the Python object around this would be cleared before the T ends, or, where the
// collector of cycles takes them, in any order.
//
// The destructor of a T waits for other ranks without the GIL, so it must not touch Python.
template <class T>
struct Held : OfProcess {
  explicit Held(std::unique_ptr<T> made, std::vector<nanobind::object> its_kept = {})
      : kept(std::move(its_kept)), value(std::move(made)) {}
  Held(Held&&) = default;
  ~Held() {
    if (value == nullptr) return;
    if (is_abandoned()) {  // its threads may still write to what is kept
      static_cast<void>(value.release());
      static_cast<void>(new std::vector<nanobind::object>(std::move(kept)));
    } else {
      const nanobind::gil_scoped_release released;
      value.reset();
    }
  }
  std::vector<nanobind::object> kept;  // some may be null; guarded by the GIL
  std::unique_ptr<T> value;
};

// The objects of a Python sequence.
using Keep = const nanobind::sequence&;
std::vector<nanobind::object> objects_of(Keep sequence);

// Shows the collector of cycles what an object of class H keeps; for nanobind::type_slots. There is
// no slot that clears it: a cycle is broken elsewhere, so that the T ends before what it writes to.
template <class H>
int traverse_kept(PyObject* self, visitproc visit, void* arg) {  // Py_VISIT says `arg`
  Py_VISIT(Py_TYPE(self));
  if (!nanobind::inst_ready(self)) return 0;
  for (const nanobind::object& each : nanobind::inst_ptr<H>(self)->kept) Py_VISIT(each.ptr());
  return 0;
}
template <class H>
PyType_Slot kept_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(static_cast<traverseproc>(&traverse_kept<H>))},
    {0, nullptr},
};

// Counts the calls that threads are in, so that nobody closes an object under another thread. It is
// made and ends with the GIL, which guards the number.
class InCall {
 public:
  explicit InCall(int& calls) noexcept : calls_(calls) { ++calls_; }
  ~InCall() { --calls_; }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  int& calls_;
};
// Refuses to close an object, by its name in the error, while a thread is in a call of it.
void check_not_in_call(int calls, const char* object);

// No handle means the world, for which MPI is started if nobody has.
Communicator communicator(std::optional<std::uintptr_t> handle);

void define_channel(nanobind::module_& module);
void define_collectives(nanobind::module_& module);
void define_irregular(nanobind::module_& module);
void define_library_blocks(nanobind::module_& module);
void define_subarrays(nanobind::module_& module);
void define_process_group(nanobind::module_& module);
void define_reduction(nanobind::module_& module);
void define_settings(nanobind::module_& module);
void define_tuning(nanobind::module_& module);
void define_window(nanobind::module_& module);

}  // namespace ropewalk::python
