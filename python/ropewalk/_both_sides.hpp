// What a collective sends and what it receives, together.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "_sides.hpp"

namespace ropewalk::python {

// What a call works on. Both sides stay until it is complete.
struct Buffers {
  View sent;
  View received;
  nanobind::object result;
  nanobind::object array;  // that was sent
};

// The two sides of a call whose result has as many elements as `shape` says; `out` may be None.
struct Sides {
  Side send;
  Side receive;
  Buffers buffers;
};

template <class MakeShape>
Sides sides_of(nanobind::handle array, nanobind::handle out, MakeShape shape) {
  Sides sides;
  const bool is_in_place = out.is(array) && !out.is_none();
  sides.send = is_in_place ? output(array) : input(array);
  const auto& wanted = shape(sides.send);
  if (out.is_none()) {
    sides.receive = new_output(array, sides.send, wanted);
    sides.buffers.result = sides.receive.array;
  } else {
    sides.receive = is_in_place ? sides.send : output(out);
    check_dtypes(sides.send, array, sides.receive, out);
    check_elements(sides.receive, product(wanted), sides.send, "out");
    sides.buffers.result = nanobind::borrow(out);
  }
  sides.buffers.sent = sides.send.view;
  sides.buffers.array = sides.send.array;
  sides.buffers.received = sides.receive.view;
  return sides;
}

// The sides, where memory that both have is for a call in place (see check_apart). `rank` is given
// where the larger side has a block of the same length for each rank.
inline Sides&& apart(Sides&& sides, int rank = 0) {
  const std::size_t block = std::min(sides.send.bytes(), sides.receive.bytes());
  check_apart(sides.send, sides.receive, static_cast<std::size_t>(rank) * block);
  return std::move(sides);
}

// The same with blocks of `counts` rows, whose bytes are `row`.
inline Sides&& apart(Sides&& sides, const Counts& counts, std::size_t row, int rank) {
  const std::size_t before = std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
  check_apart(sides.send, sides.receive, before * row);
  return std::move(sides);
}

// A rank that is not the root has one side only.
inline Sides sent_only(nanobind::handle array) {
  Sides sides;
  sides.send = input(array);
  sides.buffers = {sides.send.view, {}, nanobind::none(), sides.send.array};
  return sides;
}

inline Sides received_only(nanobind::handle out) {
  if (out.is_none()) refuse("out: None, expected an array on every rank but the root");
  Sides sides;
  sides.receive = output(out);
  sides.buffers = {{}, sides.receive.view, nanobind::borrow(out), {}};
  return sides;
}

inline auto same_shape() {
  return [](const Side& send) -> const Shape& { return send.shape; };
}

}  // namespace ropewalk::python
