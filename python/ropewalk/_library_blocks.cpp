// Blocks of a library that the program has loaded, in the arena: what PyTorch's tensors lie in.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "_core.hpp"
#include "ropewalk/detail/library_blocks.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ropewalk::python {

void define_library_blocks(nb::module_& module) {
  module.def("place_library_blocks", &detail::place_library_blocks, "library"_a, "least_bytes"_a,
             release_gil());
  module.def("library_has_asked", &detail::library_has_asked);
  module.def("malloc_library_serves", &detail::malloc_library_serves);
}

}  // namespace ropewalk::python
