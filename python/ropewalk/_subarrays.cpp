// The exchange of parts of arrays. subarrays.py explains each call and finds where the parts lie.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "_core.hpp"
#include "_sides.hpp"
#include "ropewalk/subarray_exchange.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ropewalk::python {
namespace {

using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;
// The words are (offset, extents, strides).
using PartWords = std::tuple<std::size_t, std::vector<std::size_t>, std::vector<std::size_t>>;

struct HeldExchange : OfProcess {
  HeldExchange(std::shared_ptr<SubarrayExchange> made, nb::handle communicator_kept)
      : communicator(nb::borrow(communicator_kept)), value(std::move(made)) {}
  ~HeldExchange() {
    // Other ranks may never come to the end of it: it is left to the end of the process.
    if (is_abandoned() && value != nullptr) {
      static_cast<void>(new auto(std::move(value)));
      static_cast<void>(communicator.release());
    }
  }
  HeldExchange(const HeldExchange&) = delete;
  HeldExchange& operator=(const HeldExchange&) = delete;

  SubarrayExchange& get() const {
    if (value == nullptr) refuse("subarray exchange: closed, expected an open one");
    return *value;
  }
  nb::object communicator;                  // ends after `value`, which uses it
  std::shared_ptr<SubarrayExchange> value;  // arrays of its memory own it, too
};

ArrayParts parts_of(std::size_t bytes, const std::vector<PartWords>& words) {
  ArrayParts made{bytes, {}};
  for (const auto& [offset, extents, strides] : words) {
    made.parts.push_back({offset, extents, strides});
  }
  return made;
}

std::unique_ptr<HeldExchange> make(std::optional<std::uintptr_t> handle, std::size_t element_bytes,
                                   std::size_t sent_bytes, const std::vector<PartWords>& sent,
                                   std::size_t received_bytes,
                                   const std::vector<PartWords>& received, nb::handle keep) {
  std::shared_ptr<SubarrayExchange> made;
  {
    const nb::gil_scoped_release released;
    made = std::make_shared<SubarrayExchange>(communicator(handle), element_bytes,
                                              parts_of(sent_bytes, sent),
                                              parts_of(received_bytes, received));
  }
  return std::make_unique<HeldExchange>(std::move(made), keep);
}

Bytes memory(const HeldExchange& self) {
  const SubarrayExchange& exchange = self.get();
  const nb::capsule owner(
      new std::shared_ptr<SubarrayExchange>(self.value),
      [](void* held) noexcept { delete static_cast<std::shared_ptr<SubarrayExchange>*>(held); });
  return Bytes(exchange.data(), {exchange.bytes()}, owner);
}

void exchange(const HeldExchange& self, std::uintptr_t address) {
  SubarrayExchange& one = self.get();
  const nb::gil_scoped_release released;
  one.exchange(reinterpret_cast<const void*>(address));
}

void close(HeldExchange& self) {
  if (self.value == nullptr) return;
  const nb::gil_scoped_release released;
  self.value->close();
  self.value.reset();
}

}  // namespace

void define_subarrays(nb::module_& module) {
  nb::class_<HeldExchange>(module, "SubarrayExchange")
      .def("near_bytes", [](const HeldExchange& self) { return self.get().near_bytes(); })
      .def("far_bytes", [](const HeldExchange& self) { return self.get().far_bytes(); })
      .def("memory", &memory)
      .def("exchange", &exchange)
      .def("closed", [](const HeldExchange& self) { return self.value == nullptr; })
      .def("close", &close);
  module.def(
      "ranks_of", [](std::optional<std::uintptr_t> handle) { return communicator(handle).size(); },
      "handle"_a.none());
  module.def("subarray_exchange", &make, "handle"_a.none(), "element_bytes"_a, "sent_bytes"_a,
             "sent"_a, "received_bytes"_a, "received"_a, "keep"_a.none());
}

}  // namespace ropewalk::python
