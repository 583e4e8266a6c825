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

// The plan is closed explicitly, or by Python's collector.
struct HeldReduction : Held<ReductionPlan> {
  using Held::Held;
  ReductionPlan& get() const {
    if (value == nullptr) throw Error(ErrorCode::argument, "plan: closed, expected an open one");
    return *value;
  }
};

// The words are (elements, type, input, output).
using TensorWords = std::tuple<std::size_t, int, std::uintptr_t, std::uintptr_t>;

std::unique_ptr<HeldReduction> make_plan(std::optional<std::uintptr_t> handle,
                                         const std::vector<TensorWords>& words, int op,
                                         bool average, std::size_t bucket_bytes,
                                         std::size_t fuse_bytes, bool thread) {
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
  return std::make_unique<HeldReduction>(
      std::make_unique<ReductionPlan>(communicator(handle), tensors, options));
}

using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

void define_plan(nb::module_& module) {
  nb::class_<PendingReduction>(module, "PendingReduction")
      .def("test", &PendingReduction::test, release_gil())
      .def("wait", &PendingReduction::wait, release_gil());
  nb::class_<HeldReduction>(module, "ReductionPlan")
      .def("rank", [](const HeldReduction& plan) { return plan.get().rank(); })
      .def("size", [](const HeldReduction& plan) { return plan.get().size(); })
      .def("nodes", [](const HeldReduction& plan) { return plan.get().nodes(); })
      .def("has_thread", [](const HeldReduction& plan) { return plan.get().has_thread(); })
      .def("buckets", [](const HeldReduction& plan) { return plan.get().buckets(); })
      .def("bucket_of",
           [](const HeldReduction& plan, int tensor) { return plan.get().bucket_of(tensor); })
      .def("bind",
           [](HeldReduction& plan, int tensor, std::uintptr_t input, std::uintptr_t output) {
             plan.get().bind(tensor, reinterpret_cast<const void*>(input),
                             reinterpret_cast<void*>(output));
           })
      .def("data",
           [](const HeldReduction& plan, int tensor) {
             return reinterpret_cast<std::uintptr_t>(plan.get().data(tensor));
           })
      // The bytes at an address of the plan; they keep it alive.
      .def("view",
           [](const nb::handle& self, std::uintptr_t address, std::size_t bytes) {
             return Bytes(reinterpret_cast<void*>(address), {bytes}, self);
           })
      .def(
          "start", [](HeldReduction& plan, int bucket) { return plan.get().start(bucket); },
          release_gil(), nb::keep_alive<0, 1>())
      .def(
          "start_all", [](HeldReduction& plan) { return plan.get().start(); }, release_gil(),
          nb::keep_alive<0, 1>())
      .def(
          "ready", [](HeldReduction& plan, int tensor) { plan.get().ready(tensor); }, release_gil())
      .def(
          "test", [](HeldReduction& plan) { return plan.get().test(); }, release_gil())
      .def(
          "wait", [](HeldReduction& plan) { plan.get().wait(); }, release_gil())
      .def(
          "reduce", [](HeldReduction& plan) { plan.get().reduce(); }, release_gil())
      .def(
          "close", [](HeldReduction& plan) { plan.value.reset(); }, release_gil());
  module.def("reduction_plan", &make_plan, "handle"_a.none(), "tensors"_a, "op"_a, "average"_a,
             "bucket_bytes"_a, "fuse_bytes"_a, "thread"_a, release_gil());
}

}  // namespace

void define_reduction(nb::module_& module) {
  module.def("describe_input", &describe<nb::ndarray<nb::ro>>);
  module.def("describe_output", &describe<nb::ndarray<>>);
  define_plan(module);
}

}  // namespace ropewalk::python
