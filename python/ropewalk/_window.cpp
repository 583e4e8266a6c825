// Memory of each rank that others read and write, as arrays. window.py explains each call; here
// arguments are checked, and the GIL is released while a call may take long.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "_core.hpp"
#include "_sides.hpp"
#include "ropewalk/window.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ropewalk::python {
namespace {

using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

// Copies of fewer bytes, of some 4 us, are made with the GIL, which takes about as long to give up
// and take again where other threads run.
constexpr std::size_t bytes_without_gil = std::size_t{64} << 10;

// Ends communication with other nodes. `alone`: as where an exception takes this rank away, without
// waiting for the others, which are told.
void end(Window& window, bool alone) {
  struct Alone {};
  struct Closing {
    ~Closing() { window.close(); }
    Window& window;
  };
  try {
    const Closing closing{window};
    if (alone) throw Alone();
  } catch (const Alone&) {  // was thrown only so that the window is closed during unwinding
  }
}

struct HeldWindow {
  HeldWindow() = default;
  // The others do not know when this rank collects what it has forgotten to close.
  ~HeldWindow() {
    if (value != nullptr) end(*value, true);
  }
  HeldWindow(const HeldWindow&) = delete;
  HeldWindow& operator=(const HeldWindow&) = delete;

  Window& get() const {
    if (value == nullptr) refuse("window: closed, expected an open one");
    return *value;
  }
  std::shared_ptr<Window> value;  // arrays of its memory own it, too
  std::size_t element_bytes = 1;
  bool all_near = true;  // all ranks are on this node
  bool in_use = false;   // by a call of some thread; guarded by the GIL
};

template <class Call>
auto run(HeldWindow& self, Call call) {
  Window& window = self.get();
  const OneCall one(self.in_use, "window");
  const nb::gil_scoped_release released;
  return call(window);
}

// The same for a call that takes less time than the GIL does, unless it waits for another node.
template <class Call>
auto run_small(HeldWindow& self, Call call) {
  return self.all_near ? call(self.get()) : run(self, call);
}

std::unique_ptr<HeldWindow> make(std::optional<std::uintptr_t> handle, std::size_t bytes,
                                 std::size_t element_bytes, int signals) {
  auto made = std::make_unique<HeldWindow>();
  made->value = std::make_shared<Window>(communicator(handle), bytes, WindowOptions{signals});
  made->element_bytes = element_bytes;
  for (int rank = 0; rank < made->value->size(); ++rank) {
    made->all_near = made->all_near && made->value->is_near(rank);
  }
  return made;
}

Bytes memory(const HeldWindow& self, nb::handle rank_given) {
  const int rank = whole_number(rank_given, "rank");
  std::byte* data = self.get().data(rank);
  const nb::capsule owner(new std::shared_ptr<Window>(self.value), [](void* held) noexcept {
    delete static_cast<std::shared_ptr<Window>*>(held);
  });
  return Bytes(data, {self.get().bytes(rank)}, owner);
}

// ---- arguments ----------------------------------------------------------------------------------

std::size_t offset_of(const HeldWindow& self, nb::handle given) {
  std::size_t elements = 0;
  if (!nb::try_cast(given, elements)) refuse("offset: not an integer of 0 or more");
  if (elements <= SIZE_MAX / self.element_bytes) return elements * self.element_bytes;
  refuse("offset: " + std::to_string(elements) + ", expected an element of the window");
}

const Side& of_window(const HeldWindow& self, const Side& side, const char* name) {
  if (side.size == 0 || side.element_bytes == self.element_bytes) return side;
  refuse(std::string(name) + ": elements of " + std::to_string(side.element_bytes) +
         " bytes, expected those of the window, " + std::to_string(self.element_bytes) +
         "; convert them");
}

ReductionOp atomic_operation(nb::handle given) {
  std::string wanted;
  if (nb::try_cast(named_operation(given), wanted, false)) {
    for (const ReductionOp op : {ReductionOp::replace, ReductionOp::no_op}) {
      if (wanted == name(op)) return op;
    }
    if (wanted == "average") refuse("op: average, which windows do not have; divide the sums");
  }
  return operation(given);
}

// ---- calls --------------------------------------------------------------------------------------

void put(HeldWindow& self, nb::handle array, nb::handle rank_given, nb::handle offset_given) {
  const int rank = whole_number(rank_given, "rank");
  const std::size_t offset = offset_of(self, offset_given);
  const Side from = input(array);
  of_window(self, from, "array");
  const auto call = [&](Window& window) { window.put(from.data, from.bytes(), rank, offset); };
  from.bytes() < bytes_without_gil ? run_small(self, call) : run(self, call);
}

void get(HeldWindow& self, nb::handle out, nb::handle rank_given, nb::handle offset_given) {
  const int rank = whole_number(rank_given, "rank");
  const std::size_t offset = offset_of(self, offset_given);
  const Side into = output(out);
  of_window(self, into, "out");
  const auto call = [&](Window& window) { window.get(into.data, into.bytes(), rank, offset); };
  into.bytes() < bytes_without_gil ? run_small(self, call) : run(self, call);
}

void accumulate(HeldWindow& self, nb::handle array, nb::handle rank_given, nb::handle offset_given,
                nb::handle op_given) {
  const int rank = whole_number(rank_given, "rank");
  const std::size_t offset = offset_of(self, offset_given);
  const ReductionOp op = atomic_operation(op_given);
  const Side operands = input(array);
  of_window(self, operands, "array");
  const ElementType kind = type(operands);
  run(self, [&](Window& window) {
    window.accumulate(operands.data, operands.size, kind, op, rank, offset);
  });
}

void fetch_and_op(HeldWindow& self, nb::handle operand, nb::handle before, nb::handle rank_given,
                  nb::handle offset_given, nb::handle op_given) {
  const int rank = whole_number(rank_given, "rank");
  const std::size_t offset = offset_of(self, offset_given);
  const ReductionOp op = atomic_operation(op_given);
  const Side one = input(operand);
  const Side was = output(before);
  const ElementType kind = type(one);
  run_small(self, [&](Window& window) {
    window.fetch_and_op(one.data, was.data, kind, op, rank, offset);
  });
}

void compare_and_swap(HeldWindow& self, nb::handle expected, nb::handle desired, nb::handle before,
                      nb::handle rank_given, nb::handle offset_given) {
  const int rank = whole_number(rank_given, "rank");
  const std::size_t offset = offset_of(self, offset_given);
  const Side one = input(expected);
  const Side other = input(desired);
  const Side was = output(before);
  const ElementType kind = type(one);
  run_small(self, [&](Window& window) {
    window.compare_and_swap(one.data, other.data, was.data, kind, rank, offset);
  });
}

std::uint64_t amount(nb::handle given, const char* name) {
  std::uint64_t value = 0;
  if (!nb::try_cast(given, value)) refuse(std::string(name) + ": not an integer of 0 or more");
  return value;
}

void signal(HeldWindow& self, nb::handle rank_given, nb::handle index_given, nb::handle by_given) {
  const int rank = whole_number(rank_given, "rank");
  const int index = whole_number(index_given, "index");
  const std::uint64_t by = amount(by_given, "by");
  run_small(self, [&](Window& window) { window.signal(rank, index, by); });
}

std::uint64_t signals(const HeldWindow& self, nb::handle index) {
  return self.get().signals(whole_number(index, "index"));
}

void wait_signal(HeldWindow& self, nb::handle value_given, nb::handle index_given) {
  const std::uint64_t value = amount(value_given, "value");
  const int index = whole_number(index_given, "index");
  run(self, [&](Window& window) { window.wait_signal(value, index); });
}

void close(HeldWindow& self, bool alone) {
  if (self.value == nullptr) return;
  run(self, [&](Window& window) { end(window, alone); });
  self.value.reset();
}

}  // namespace

void define_window(nb::module_& module) {
  nb::class_<HeldWindow> window(module, "Window");
  window.def("rank", [](const HeldWindow& self) { return self.get().rank(); })
      .def("size", [](const HeldWindow& self) { return self.get().size(); })
      .def("closed", [](const HeldWindow& self) { return self.value == nullptr; })
      .def("is_near",
           [](const HeldWindow& self, nb::handle rank) {
             return self.get().is_near(whole_number(rank, "rank"));
           })
      .def("flush", [](HeldWindow& self) { run(self, [](Window& of) { of.flush(); }); })
      .def("fence", [](HeldWindow& self) { run(self, [](Window& of) { of.fence(); }); })
      .def("close", &close);
  const auto any = nb::arg().none();  // None is refused by name, too
  window.def("memory", &memory, any)
      .def("put", &put, any, any, any)
      .def("get", &get, any, any, any)
      .def("accumulate", &accumulate, any, any, any, any)
      .def("fetch_and_op", &fetch_and_op, any, any, any, any, any)
      .def("compare_and_swap", &compare_and_swap, any, any, any, any, any)
      .def("signal", &signal, any, any, any)
      .def("signals", &signals, any)
      .def("wait_signal", &wait_signal, any, any);
  module.def("window", &make, "handle"_a.none(), "bytes"_a, "element_bytes"_a, "signals"_a,
             release_gil());
}

}  // namespace ropewalk::python
