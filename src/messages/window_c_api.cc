// This file is the C interface of windows.
#include <cstddef>
#include <cstdint>

#include "c_call.hpp"
#include "c_struct.hpp"
#include "c_types.hpp"
#include "mpi/collectively.hpp"
#include "ropewalk/window.hpp"

struct rw_window {
  ropewalk::Window window;
};

namespace ropewalk {
namespace {

WindowOptions options_of(const rw_window_options* given) {
  constexpr std::size_t oldest = offsetof(rw_window_options, signals) + sizeof(int);
  rw_window_options options = RW_WINDOW_OPTIONS_INIT;
  if (given != nullptr) {
    options = read_struct(given, oldest, options, "options", "rw_window_options");
  }
  return {.signals = options.signals};
}

template <class Window, class Body>
int with_window(Window* window, Body&& body) {
  return c_call([&] {
    require_argument(window, "window");
    body(window->window);
  });
}

}  // namespace
}  // namespace ropewalk

using ropewalk::own_op;
using ropewalk::own_type;
using ropewalk::require_argument;
using ropewalk::Window;
using ropewalk::with_window;

extern "C" {

int rw_window_create(rw_mpi_comm comm, size_t bytes, const rw_window_options* options,
                     rw_window** out) {
  return ropewalk::c_call([&] {
    const ropewalk::Communicator communicator(comm);
    ropewalk::WindowOptions wanted;
    ropewalk::mpi::collectively({communicator.handle()}, [&] {
      require_argument(out, "out");
      wanted = ropewalk::options_of(options);
    });
    *out = new rw_window{Window(communicator, bytes, wanted)};
  });
}

int rw_window_free(rw_window* window) {
  return ropewalk::c_call([&] { delete window; });
}

int rw_window_memory(const rw_window* window, int rank, void** data, size_t* bytes) {
  return with_window(window, [&](const Window& of) {
    const std::size_t found = of.bytes(rank);
    if (data != nullptr) *data = of.data(rank);
    if (bytes != nullptr) *bytes = found;
  });
}

int rw_window_put(rw_window* window, const void* from, size_t bytes, int to, size_t offset) {
  return with_window(window, [&](Window& of) { of.put(from, bytes, to, offset); });
}

int rw_window_get(const rw_window* window, void* into, size_t bytes, int from, size_t offset) {
  return with_window(window, [&](const Window& of) { of.get(into, bytes, from, offset); });
}

int rw_window_accumulate(rw_window* window, const void* operands, size_t count, rw_type type,
                         rw_op op, int to, size_t offset) {
  return with_window(window, [&](Window& of) {
    of.accumulate(operands, count, own_type(type, "type"), own_op(op, "op"), to, offset);
  });
}

int rw_window_fetch_and_op(rw_window* window, const void* operand, void* before, rw_type type,
                           rw_op op, int rank, size_t offset) {
  return with_window(window, [&](Window& of) {
    of.fetch_and_op(operand, before, own_type(type, "type"), own_op(op, "op"), rank, offset);
  });
}

int rw_window_compare_and_swap(rw_window* window, const void* expected, const void* desired,
                               void* before, rw_type type, int rank, size_t offset) {
  return with_window(window, [&](Window& of) {
    of.compare_and_swap(expected, desired, before, own_type(type, "type"), rank, offset);
  });
}

int rw_window_flush(rw_window* window) {
  return with_window(window, [](Window& of) { of.flush(); });
}

int rw_window_signal(rw_window* window, int rank, int index, uint64_t by) {
  return with_window(window, [&](Window& of) { of.signal(rank, index, by); });
}

int rw_window_signals(const rw_window* window, int index, uint64_t* out) {
  return with_window(window, [&](const Window& of) {
    require_argument(out, "out");
    *out = of.signals(index);
  });
}

int rw_window_wait_signal(rw_window* window, int index, uint64_t value) {
  return with_window(window, [&](Window& of) { of.wait_signal(value, index); });
}

int rw_window_fence(rw_window* window) {
  return with_window(window, [&](Window& of) { of.fence(); });
}

}  // extern "C"
