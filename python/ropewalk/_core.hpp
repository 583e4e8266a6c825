// What the parts of the compiled module share.
#pragma once

#include <nanobind/nanobind.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

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

// Owns a T until it is abandoned.
template <class T>
struct Held : OfProcess {
  explicit Held(std::unique_ptr<T> made) : value(std::move(made)) {}
  Held(Held&&) = default;
  ~Held() {
    if (is_abandoned()) static_cast<void>(value.release());
  }
  std::unique_ptr<T> value;
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
