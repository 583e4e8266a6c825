// NumPy's arrays where their words lie, for calls that take less than what asking costs.
//
// PyArrayObject and the head of PyArray_Descr are part of NumPy's binary interface: every extension
// that was compiled with its headers reads them. The headers are not needed to build, so the layout
// is compared with what NumPy's own functions say of some arrays, once; where it differs, the
// buffer protocol answers instead.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <optional>

#include "_sides.hpp"

namespace ropewalk::python::numpy {

// What `make` gives at the first call. The lock of the interpreter guards it: one of C++ would be
// held while Python code runs, which may let another thread run that wants it, too. It is never
// given back, since the interpreter may be gone when this library is unloaded.
template <class Make>
nanobind::handle kept(nanobind::handle& place, Make make) {
  if (!place.is_valid()) place = nanobind::object(make()).release();
  return place;
}

// Whether it is an array of NumPy itself, not of a class derived from it.
bool is_array(nanobind::handle given);
// Whether arrays lie as this file knows them.
bool is_known();
// What an array says of itself, where it is row-major, aligned, in this machine's byte order, of a
// type that ropewalk has, and `writable` if that is asked for. For arrays only.
std::optional<Side> side_of(nanobind::handle array, bool writable);
// The dtype of an array, and where its elements begin. For arrays only, where is_known().
nanobind::handle dtype_of(nanobind::handle array);
void* data_of(nanobind::handle array);
// numpy.empty: memory of the process, which its own allocator gives.
nanobind::object empty(const Shape& shape, nanobind::handle dtype);

}  // namespace ropewalk::python::numpy
