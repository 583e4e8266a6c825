#include "_numpy.hpp"

#include <nanobind/ndarray.h>

#include <cstdint>
#include <iterator>
#include <string_view>

namespace nb = nanobind;

namespace ropewalk::python::numpy {
namespace {

// The beginnings of PyArrayObject_fields and PyArray_Descr, the same in NumPy 1 and 2 (its header
// ndarraytypes).
struct Dtype {
  PyObject head;
  PyObject* scalar;
  char kind;
  char letter;
  char byte_order;
  char former_flags;
  int number;
};
struct Array {
  PyObject head;
  char* data;
  int axes;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  PyObject* base;
  Dtype* dtype;
  int flags;
};
constexpr int row_major = 0x1, aligned = 0x100, writeable = 0x400;  // NPY_ARRAY_…

// The types of NumPy's own (NPY_TYPES), by number; C's long double and what follows are none of
// ropewalk's, but for half precision.
struct Kind {
  std::uint8_t bytes;
  ElementType type;
};
template <class T>
constexpr Kind integer(ElementType (*of)(std::size_t)) {
  return {sizeof(T), of(sizeof(T))};
}
constexpr ElementType signed_of(std::size_t bytes) {
  return bytes == 1   ? ElementType::int8
         : bytes == 2 ? ElementType::int16
         : bytes == 4 ? ElementType::int32
                      : ElementType::int64;
}
constexpr ElementType unsigned_of(std::size_t bytes) {
  return bytes == 1   ? ElementType::uint8
         : bytes == 2 ? ElementType::uint16
         : bytes == 4 ? ElementType::uint32
                      : ElementType::uint64;
}
constexpr Kind kinds[] = {
    {1, ElementType::boolean},
    integer<signed char>(signed_of),
    integer<unsigned char>(unsigned_of),
    integer<short>(signed_of),
    integer<unsigned short>(unsigned_of),
    integer<int>(signed_of),
    integer<unsigned>(unsigned_of),
    integer<long>(signed_of),
    integer<unsigned long>(unsigned_of),
    integer<long long>(signed_of),
    integer<unsigned long long>(unsigned_of),
    {4, ElementType::float32},
    {8, ElementType::float64},
    {0, ElementType::float64},  // long double
    {8, ElementType::complex_float32},
    {16, ElementType::complex_float64},
};
constexpr int half_number = 23;
constexpr Kind half{2, ElementType::float16};

const Kind* kind_of(const Dtype& dtype) {
  if (dtype.byte_order != '=' && dtype.byte_order != '|') return nullptr;
  if (dtype.number == half_number) return &half;
  if (dtype.number < 0 || dtype.number >= static_cast<int>(std::size(kinds))) return nullptr;
  const Kind& kind = kinds[dtype.number];
  return kind.bytes == 0 ? nullptr : &kind;
}

const Array& fields(nb::handle array) { return *reinterpret_cast<const Array*>(array.ptr()); }

nb::object named(const char* name) { return nb::module_::import_("numpy").attr(name); }

bool says_the_same(nb::handle array) {
  const Array& found = fields(array);
  const nb::object flags = array.attr("flags");
  const auto bit = [&](int mask, const char* name) {
    return ((found.flags & mask) != 0) == nb::cast<bool>(flags.attr(name));
  };
  const auto data = nb::cast<std::uintptr_t>(array.attr("ctypes").attr("data"));
  const auto shape = nb::cast<nb::tuple>(array.attr("shape"));
  if (reinterpret_cast<std::uintptr_t>(found.data) != data) return false;
  if (found.axes != static_cast<int>(nb::len(shape))) return false;
  for (int axis = 0; axis < found.axes; ++axis) {
    if (found.shape[axis] != nb::cast<Py_ssize_t>(shape[static_cast<std::size_t>(axis)])) {
      return false;
    }
  }
  const nb::object dtype = array.attr("dtype");
  return nb::handle(reinterpret_cast<PyObject*>(found.dtype)).is(dtype) &&
         found.dtype->number == nb::cast<int>(dtype.attr("num")) &&
         std::string_view(&found.dtype->byte_order, 1) ==
             nb::cast<nb::str>(dtype.attr("byteorder")).c_str() &&
         bit(row_major, "c_contiguous") && bit(aligned, "aligned") && bit(writeable, "writeable");
}

bool compared() {
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::object plain = numpy.attr("empty")(nb::make_tuple(3, 5), "f4");
  const nb::object turned = plain.attr("T");
  const nb::object fixed = numpy.attr("empty")(nb::make_tuple(7), ">i8");
  fixed.attr("setflags")(nb::arg("write") = false);
  const nb::object odd = numpy.attr("frombuffer")(nb::bytes("123456789", 9), "f2", 2, 1);
  return says_the_same(plain) && says_the_same(turned) && says_the_same(fixed) &&
         says_the_same(odd);
}

}  // namespace

bool is_array(nb::handle given) {
  static constinit nb::handle type;
  return nb::handle(given.type()).is(kept(type, [] { return named("ndarray"); }));
}

bool is_known() {
  static constinit nb::handle known;
  return kept(known, [] { return nb::object(nb::bool_(compared())); }).is(Py_True);
}

std::optional<Side> side_of(nb::handle array, bool writable) {
  if (!is_known()) return std::nullopt;
  const Array& found = fields(array);
  const int wanted = row_major | aligned | (writable ? writeable : 0);
  const Kind* kind = kind_of(*found.dtype);
  if (kind == nullptr || (found.flags & wanted) != wanted) return std::nullopt;
  std::optional<Side> made(std::in_place);
  made->array = nb::borrow(array);
  made->data = found.data;
  made->element_bytes = kind->bytes;
  made->type = kind->type;
  made->shape.assign(found.shape, found.shape + found.axes);
  made->size = product(made->shape);
  return made;
}

nb::handle dtype_of(nb::handle array) { return reinterpret_cast<PyObject*>(fields(array).dtype); }

void* data_of(nb::handle array) { return fields(array).data; }

nb::object empty(const Shape& shape, nb::handle dtype) {
  static constinit nb::handle function;
  const nb::object extents = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    PyTuple_SetItem(extents.ptr(), static_cast<Py_ssize_t>(axis), PyLong_FromSize_t(shape[axis]));
  }
  return kept(function, [] { return named("empty"); })(extents, dtype);
}

}  // namespace ropewalk::python::numpy
