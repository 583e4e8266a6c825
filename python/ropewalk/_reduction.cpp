// This file makes repeated reductions by address, and reads what any array says of itself (buffer
// protocol or DLPack).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "_arrays.hpp"
#include "_core.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/reduction_plan.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ropewalk::python {
namespace {

// ---- arrays of others

// The words are (address, elements, type as ElementType or -1, contiguous, in the memory of the
// CPU).
using Described = std::tuple<std::uintptr_t, std::size_t, int, bool, bool>;

template <class Array>
Described describe(const Array& array) {
  const auto type = type_of(array.dtype());
  return {reinterpret_cast<std::uintptr_t>(array.data()), array.size(),
          type ? static_cast<int>(*type) : -1, array.size() == 0 || contiguous(array),
          array.device_type() == nb::device::cpu::value};
}

// ---- plans

// The plan is closed explicitly, or by Python's collector. It keeps the arrays of its tensors, in
// their order, and the communicator behind them.
struct HeldReduction : Held<ReductionPlan> {
  using Held::Held;
  ReductionPlan& get() const {
    if (value == nullptr) throw Error(ErrorCode::argument, "plan: closed, expected an open one");
    return *value;
  }
  int calls = 0;  // that threads are in; guarded by the GIL
};

// Calls that may wait for other ranks.
template <class Call>
auto run(HeldReduction& self, Call call) {
  ReductionPlan& plan = self.get();
  const InCall one(self.calls);
  const nb::gil_scoped_release released;
  return call(plan);
}

// What start() has returned. Python keeps the plan, which may be closed all the same.
struct StartedReduction {
  HeldReduction& plan;
  PendingReduction value;
};

// The words are (elements, type, input, output).
using TensorWords = std::tuple<std::size_t, int, std::uintptr_t, std::uintptr_t>;

std::unique_ptr<HeldReduction> make_plan(std::optional<std::uintptr_t> handle,
                                         const std::vector<TensorWords>& words, int op,
                                         bool average, std::size_t bucket_bytes,
                                         std::size_t fuse_bytes, bool thread, Keep keep) {
  std::vector<PlanTensor> tensors;
  tensors.reserve(words.size());
  for (const auto& [count, type, input, output] : words) {
    tensors.push_back({count, static_cast<ElementType>(type), reinterpret_cast<const void*>(input),
                       reinterpret_cast<void*>(output)});
  }
  ReductionPlanOptions options;
  options.op = static_cast<ReductionOp>(op);
  options.average = average;
  options.bucket_bytes = bucket_bytes;
  options.fuse_bytes = fuse_bytes;
  options.thread = thread;
  std::unique_ptr<ReductionPlan> made;
  {
    const nb::gil_scoped_release released;
    made = std::make_unique<ReductionPlan>(communicator(handle), tensors, options);
  }
  return std::make_unique<HeldReduction>(std::move(made), objects_of(keep));
}

using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

// The bytes at an address of the plan. They stay when the plan is closed.
Bytes view(const HeldReduction& self, std::uintptr_t address, std::size_t bytes) {
  using Memory = std::shared_ptr<const void>;
  const nb::capsule owner(new Memory(self.get().memory()),
                          [](void* held) noexcept { delete static_cast<Memory*>(held); });
  return Bytes(reinterpret_cast<void*>(address), {bytes}, owner);
}

void close(HeldReduction& self) {
  check_not_in_call(self.calls, "plan");
  std::unique_ptr<ReductionPlan> plan = std::move(self.value);
  const nb::gil_scoped_release released;
  plan.reset();
}

// The program ends, and completes what was started.
void end(HeldReduction& self) {
  if (self.value == nullptr || self.calls > 0 || !self.is_own()) return;
  run(self, [](ReductionPlan& of) { of.wait(); });
}

StartedReduction start(HeldReduction& self, int bucket) {
  return {self, run(self, [&](ReductionPlan& of) { return of.start(bucket); })};
}
StartedReduction start_all(HeldReduction& self) {
  return {self, run(self, [](ReductionPlan& of) { return of.start(); })};
}

void define_started(nb::module_& module) {
  nb::class_<StartedReduction>(module, "PendingReduction")
      .def("test",
           [](StartedReduction& self) {
             return run(self.plan, [&](ReductionPlan&) { return self.value.test(); });
           })
      .def("wait", [](StartedReduction& self) {
        run(self.plan, [&](ReductionPlan&) { self.value.wait(); });
      });
}

void define_plan(nb::module_& module) {
  nb::class_<HeldReduction>(module, "ReductionPlan", nb::type_slots(kept_slots<HeldReduction>))
      .def("rank", [](const HeldReduction& self) { return self.get().rank(); })
      .def("size", [](const HeldReduction& self) { return self.get().size(); })
      .def("nodes", [](const HeldReduction& self) { return self.get().nodes(); })
      .def("has_thread", [](const HeldReduction& self) { return self.get().has_thread(); })
      .def("buckets", [](const HeldReduction& self) { return self.get().buckets(); })
      .def("bucket_of",
           [](const HeldReduction& self, int tensor) { return self.get().bucket_of(tensor); })
      .def("bind",
           [](HeldReduction& self, int tensor, std::uintptr_t input, std::uintptr_t output,
              nb::object keep) {
             self.get().bind(tensor, reinterpret_cast<const void*>(input),
                             reinterpret_cast<void*>(output));
             std::swap(self.kept.at(static_cast<std::size_t>(tensor)), keep);
           })
      .def("data",
           [](const HeldReduction& self, int tensor) {
             return reinterpret_cast<std::uintptr_t>(self.get().data(tensor));
           })
      .def("view", &view)
      .def("start", &start, nb::keep_alive<0, 1>())
      .def("start_all", &start_all, nb::keep_alive<0, 1>())
      .def("ready", [](HeldReduction& self,
                       int tensor) { run(self, [&](ReductionPlan& of) { of.ready(tensor); }); })
      .def("test",
           [](HeldReduction& self) {
             return run(self, [](ReductionPlan& of) { return of.test(); });
           })
      .def("wait", [](HeldReduction& self) { run(self, [](ReductionPlan& of) { of.wait(); }); })
      .def("reduce", [](HeldReduction& self) { run(self, [](ReductionPlan& of) { of.reduce(); }); })
      .def("close", &close)
      .def("end", &end);
  module.def("reduction_plan", &make_plan, "handle"_a.none(), "tensors"_a, "op"_a, "average"_a,
             "bucket_bytes"_a, "fuse_bytes"_a, "thread"_a, "keep"_a);
}

}  // namespace

void define_reduction(nb::module_& module) {
  module.def("describe_input", &describe<nb::ndarray<nb::ro>>);
  module.def("describe_output", &describe<nb::ndarray<>>);
  define_started(module);
  define_plan(module);
}

}  // namespace ropewalk::python
