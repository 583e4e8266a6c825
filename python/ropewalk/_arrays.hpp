// What any array says of itself, by the buffer protocol or by DLPack.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>

#include "ropewalk/types.hpp"

namespace ropewalk::python {

// The element type in ropewalk's words; nothing where it has none of the kind.
std::optional<ElementType> type_of(nanobind::dlpack::dtype type);

// Row-major without gaps. Axes of one element may have any stride.
template <class Array>
bool contiguous(const Array& array) {
  std::int64_t expected = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != expected) return false;
    expected *= static_cast<std::int64_t>(array.shape(i));
  }
  return true;
}

}  // namespace ropewalk::python
