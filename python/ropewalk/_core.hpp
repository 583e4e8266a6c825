// What the parts of the compiled module share.
#pragma once

#include <nanobind/nanobind.h>

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

// Owns a T until it is abandoned.
template <class T>
struct Held {
  explicit Held(std::unique_ptr<T> made) : value(std::move(made)) {}
  Held(Held&&) = default;
  ~Held() {
    if (abandoned()) static_cast<void>(value.release());
  }
  std::unique_ptr<T> value;
};

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
