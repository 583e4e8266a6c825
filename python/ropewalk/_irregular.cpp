// The exchange along lists of neighbors. irregular.py explains each call and checks its arrays.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "_core.hpp"
#include "_sides.hpp"
#include "ropewalk/irregular_halo.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ropewalk::python {
namespace {

using Indices = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// The words are (rank, indices that are sent, indices that are received).
using NeighborWords = std::tuple<int, Indices, Indices>;
// It keeps the communicator, and the array of the exchange that is under way.
struct HeldHalo : Held<IrregularHalo> {
  HeldHalo(std::unique_ptr<IrregularHalo> made, nb::handle communicator_kept)
      : Held(std::move(made), {nb::borrow(communicator_kept), nb::object()}) {}
  nb::object& array_under_way() { return kept[1]; }
};

std::vector<std::int64_t> listed(const Indices& given) {
  return {given.data(), given.data() + given.size()};
}

std::unique_ptr<HeldHalo> make(std::optional<std::uintptr_t> handle,
                               const std::vector<NeighborWords>& words, std::size_t elements,
                               std::size_t element_bytes, nb::handle keep) {
  std::vector<Neighbor> neighbors;
  for (const auto& [rank, send, receive] : words) {
    neighbors.push_back({rank, listed(send), listed(receive)});
  }
  std::unique_ptr<IrregularHalo> made;
  {
    const nb::gil_scoped_release released;
    made =
        std::make_unique<IrregularHalo>(communicator(handle), neighbors, elements, element_bytes);
  }
  return std::make_unique<HeldHalo>(std::move(made), keep);
}

std::unique_ptr<HeldHalo> make_by_rows(std::optional<std::uintptr_t> handle, std::int64_t rows,
                                       const Indices& ghosts, std::size_t element_bytes,
                                       nb::handle keep) {
  std::unique_ptr<IrregularHalo> made;
  {
    const nb::gil_scoped_release released;
    const Communicator ranks = communicator(handle);
    const auto neighbors = neighbors_by_rows(ranks, rows, {ghosts.data(), ghosts.size()});
    const std::size_t elements = static_cast<std::size_t>(rows) + ghosts.size();
    made = std::make_unique<IrregularHalo>(ranks, neighbors, elements, element_bytes);
  }
  return std::make_unique<HeldHalo>(std::move(made), keep);
}

IrregularHalo& open(const HeldHalo& self) {
  if (self.value == nullptr) refuse("irregular halo: closed, expected an open one");
  return *self.value;
}

template <class Call>
auto run(const HeldHalo& self, Call call) {
  IrregularHalo& halo = open(self);
  const nb::gil_scoped_release released;
  return call(halo);
}

void* array_at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

void start(HeldHalo& self, std::uintptr_t address, nb::handle array) {
  run(self, [&](IrregularHalo& halo) { halo.start(array_at(address)); });
  self.array_under_way() = nb::borrow(array);
}

bool test(HeldHalo& self) {
  if (!run(self, [](IrregularHalo& halo) { return halo.test(); })) return false;
  self.array_under_way().reset();
  return true;
}

void wait(HeldHalo& self) {
  run(self, [](IrregularHalo& halo) { halo.wait(); });
  self.array_under_way().reset();
}

void combine(const HeldHalo& self, std::uintptr_t address, nb::handle array, nb::handle op_given) {
  const ReductionOp op = operation(op_given);
  const ElementType kind = type(input(array), array);
  run(self, [&](IrregularHalo& halo) { halo.combine(array_at(address), kind, op); });
}

}  // namespace

void define_irregular(nb::module_& module) {
  nb::class_<HeldHalo>(module, "IrregularHalo", nb::type_slots(kept_slots<HeldHalo>))
      .def("near_bytes", [](const HeldHalo& self) { return open(self).near_bytes(); })
      .def("far_bytes", [](const HeldHalo& self) { return open(self).far_bytes(); })
      .def("start", &start)
      .def("test", &test)
      .def("wait", &wait)
      .def("combine", &combine, nb::arg(), nb::arg().none(), nb::arg().none())
      .def("closed", [](const HeldHalo& self) { return self.value == nullptr; })
      .def(
          "close", [](HeldHalo& self) { self.value.reset(); }, release_gil());
  module.def("irregular_halo", &make, "handle"_a.none(), "neighbors"_a, "elements"_a,
             "element_bytes"_a, "keep"_a.none());
  module.def("irregular_halo_by_rows", &make_by_rows, "handle"_a.none(), "rows"_a, "ghosts"_a,
             "element_bytes"_a, "keep"_a.none());
}

}  // namespace ropewalk::python
