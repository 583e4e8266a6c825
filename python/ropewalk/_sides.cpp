#include "_sides.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "_arrays.hpp"
#include "_numpy.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/memory.hpp"

namespace nb = nanobind;

namespace ropewalk::python {
namespace {

template <class Array>
bool is_taken(const Array& array) {
  return array.device_type() == nb::device::cpu::value && (array.size() == 0 || contiguous(array));
}

template <class Array>
Side side_of(nb::handle given, const Array& array) {
  Side side;
  side.view = std::make_shared<nb::ndarray<nb::ro>>(array.handle());
  side.array = nb::borrow(given);
  side.data = const_cast<void*>(static_cast<const void*>(array.data()));
  side.size = array.size();
  side.element_bytes = array.itemsize();
  side.type = type_of(array.dtype());
  side.shape.resize(array.ndim());
  for (std::size_t axis = 0; axis < side.shape.size(); ++axis) side.shape[axis] = array.shape(axis);
  return side;
}

nb::object helper(const char* name) { return nb::module_::import_("ropewalk._given").attr(name); }

// The words are (object, bytes, ElementType or -1, bytes of an element, shape).
using Taken = std::tuple<nb::object, int, std::size_t, Shape>;

// Takes what collectives.py gives: another view of the array, or a copy.
template <class Array>
Side side_of(const Taken& taken) {
  const auto& [owner, type, element_bytes, shape] = taken;
  Side side = side_of(owner, nb::cast<Array>(owner));
  side.type = type < 0 ? std::nullopt : std::optional(static_cast<ElementType>(type));
  side.size = element_bytes == 0 ? 0 : side.bytes() / element_bytes;
  side.element_bytes = element_bytes;
  side.shape = shape;
  return side;
}

// The type that a format of the buffer protocol names in the byte order of this machine; none for
// what has several parts or no type of ours.
std::optional<ElementType> type_of_format(std::string_view format, std::size_t bytes) {
  using Code = nb::dlpack::dtype_code;
  const auto bits = static_cast<std::uint8_t>(8 * bytes);
  const auto with = [&](Code code) {
    return type_of(nb::dlpack::dtype{static_cast<std::uint8_t>(code), bits, 1});
  };
  const auto is_one_of = [&](std::string_view names) { return names.find(format) != names.npos; };
  if (format == "Zf" || format == "Zd") return with(Code::Complex);
  if (format.size() != 1) return std::nullopt;
  if (format == "?") return with(Code::Bool);
  if (is_one_of("bhilq")) return with(Code::Int);
  if (is_one_of("BHILQ")) return with(Code::UInt);
  if (is_one_of("efd")) return with(Code::Float);
  return std::nullopt;
}

// An array of NumPy by its buffer. It takes half as long as DLPack, which nanobind tries first. The
// buffer is given back at once: NumPy does not move the elements of an array to which others refer.
std::optional<Side> by_buffer(nb::handle given, bool writable) {
  Py_buffer buffer;
  const int flags = PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(given.ptr(), &buffer, flags) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  Side side;
  side.array = nb::borrow(given);
  side.data = buffer.buf;
  side.element_bytes = static_cast<std::size_t>(buffer.itemsize);
  side.type = type_of_format(buffer.format, side.element_bytes);
  side.shape.assign(buffer.shape, buffer.shape + buffer.ndim);
  side.size = product(side.shape);
  PyBuffer_Release(&buffer);
  return side.type ? std::optional(std::move(side)) : std::nullopt;
}

// Whether the memory of a tensor of PyTorch holds other numbers than the tensor: PyTorch conjugates
// or negates such a tensor when it reads it. nanobind takes its memory without a question.
bool is_lazy(nb::handle given) {
  static constinit nb::handle conjugated, negated;
  const auto says = [&](nb::handle question) {
    PyObject* const found = PyObject_GetAttr(given.ptr(), question.ptr());
    if (found == nullptr) {
      PyErr_Clear();
      return false;
    }
    return nb::steal(found)().is(Py_True);
  };
  return says(numpy::kept(conjugated, [] { return nb::object(nb::str("is_conj")); })) ||
         says(numpy::kept(negated, [] { return nb::object(nb::str("is_neg")); }));
}

// An array of the host, where it can be used as it is; else nothing.
template <class Array>
std::optional<Side> as_it_is(nb::handle given) {
  if (numpy::is_array(given)) {
    constexpr bool writable = std::is_same_v<Array, nb::ndarray<>>;
    if (auto side = numpy::side_of(given, writable)) return side;
    if (auto side = by_buffer(given, writable)) return side;
  }
  Array array;
  if (!nb::try_cast(given, array, false) || !is_taken(array)) return std::nullopt;
  if (is_lazy(given)) return std::nullopt;
  return side_of(given, array);
}

// The words are (address, bytes of an element, shape).
using OnDevice = std::tuple<std::uintptr_t, std::size_t, Shape>;

// An array in memory of a CUDA device, where it is one; else nothing. `name` is the argument's.
template <class Array>
std::optional<Side> on_device(nb::handle given, const char* name) {
  Array array;
  if (nb::try_cast(given, array, false) && array.device_type() == nb::device::cuda::value &&
      (array.size() == 0 || contiguous(array))) {
    return side_of(given, array);
  }
  const nb::object found = helper("_on_device")(given, name);
  if (found.is_none()) return std::nullopt;
  const auto [address, element_bytes, shape] = nb::cast<OnDevice>(found);
  Side side;
  side.array = nb::borrow(given);
  side.data = reinterpret_cast<void*>(address);
  side.element_bytes = element_bytes;
  side.size = product(shape);
  side.shape = shape;
  return side;
}

std::string text(const Shape& shape) {
  std::string all = "(";
  for (const std::size_t extent : shape) all += std::to_string(extent) + ", ";
  if (shape.size() > 1) all.resize(all.size() - 2);
  return shape.size() == 1 ? all.substr(0, all.size() - 1) + ")" : all + ")";
}

}  // namespace

Side input(nb::handle given) {
  if (auto side = as_it_is<nb::ndarray<nb::ro>>(given)) return *std::move(side);
  return side_of<nb::ndarray<nb::ro>>(nb::cast<Taken>(helper("_sendable")(given)));
}

Side input_in_place(nb::handle given) {
  if (auto side = as_it_is<nb::ndarray<nb::ro>>(given)) return *std::move(side);
  return side_of<nb::ndarray<nb::ro>>(nb::cast<Taken>(helper("_sendable_in_place")(given)));
}

Side output(nb::handle given, const char* name) {
  if (auto side = as_it_is<nb::ndarray<>>(given)) return *std::move(side);
  return side_of<nb::ndarray<>>(nb::cast<Taken>(helper("_receivable")(given, name)));
}

Side message_input(nb::handle given) {
  if (auto side = as_it_is<nb::ndarray<nb::ro>>(given)) return *std::move(side);
  if (auto side = on_device<nb::ndarray<nb::ro>>(given, "array")) return *std::move(side);
  return input(given);
}

Side message_input_in_place(nb::handle given) {
  if (auto side = as_it_is<nb::ndarray<nb::ro>>(given)) return *std::move(side);
  if (auto side = on_device<nb::ndarray<nb::ro>>(given, "array")) return *std::move(side);
  return input_in_place(given);
}

Side message_output(nb::handle given) {
  if (auto side = as_it_is<nb::ndarray<>>(given)) return *std::move(side);
  if (auto side = on_device<nb::ndarray<>>(given, "out")) return *std::move(side);
  return output(given);
}

std::size_t product(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

namespace {

// Results of fewer bytes lie in memory of NumPy's own: a new block of the arena and its array cost
// 0.75 us more. From here on ranks read and write results where they are. Of new results between
// two ranks (Xeon virtual machine, 2 cores), allreduce of arrays in the arena gains from 16 KiB on,
// alltoall of private arrays from 32 KiB on, allreduce of private arrays from 128 KiB on.
constexpr std::size_t least_arena_bytes = std::size_t{16} << 10;

nb::object dtype_of(nb::handle sent, const Side& like) {
  if (numpy::is_known() && numpy::is_array(sent)) return nb::borrow(numpy::dtype_of(sent));
  static constinit nb::handle of_others;
  return numpy::kept(of_others, [] { return helper("_dtype_of"); })(
      sent, like.type ? static_cast<int>(*like.type) : -1);
}

// Memory of the arena as an array of bytes, which gives it back at its end.
nb::object bytes_of_arena(std::size_t bytes, void*& data) {
  {
    const nb::gil_scoped_release released;  // first touch of new pages takes 0.1 to 0.5 s/GiB
    data = Arena::process().allocate(std::max<std::size_t>(bytes, 1));
  }
  const nb::capsule memory(data, [](void* block) noexcept { Arena::process().deallocate(block); });
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(data, 1, &bytes, memory));
}

}  // namespace

Side new_output(nb::handle sent, const Side& like, Shape shape) {
  Side side;
  side.element_bytes = like.element_bytes;
  side.type = like.type;
  side.size = product(shape);
  side.shape = std::move(shape);
  const nb::object dtype = dtype_of(sent, like);
  if (side.bytes() < least_arena_bytes && numpy::is_known()) {
    side.array = numpy::empty(side.shape, dtype);
    side.data = numpy::data_of(side.array);
    return side;
  }
  static constinit nb::handle shaped;
  const nb::object memory = bytes_of_arena(side.bytes(), side.data);
  side.array = numpy::kept(shaped, [] { return helper("_shaped"); })(
      memory, dtype, nb::tuple(nb::cast(side.shape)));
  return side;
}

// ---- checks -------------------------------------------------------------------------------------

void refuse(const std::string& message) { throw Error(ErrorCode::argument, message); }

ElementType type(const Side& side, nb::handle given) {
  if (side.type) return *side.type;
  if (!given.is_valid()) given = side.array;
  refuse(nb::cast<std::string>(helper("_not_reduced")(given)));
}

void check_dtypes(const Side& send, nb::handle array, const Side& receive, nb::handle out) {
  if (!send.type && !receive.type) helper("_check_dtypes")(array, out);
}

void check_apart(const Side& send, const Side& receive, std::size_t own) {
  if (send.bytes() == 0 || receive.bytes() == 0) return;
  const bool is_sent_whole = send.bytes() > receive.bytes();
  const Side& whole = is_sent_whole ? send : receive;
  const Side& block = is_sent_whole ? receive : send;
  const auto whole_begin = reinterpret_cast<std::uintptr_t>(whole.data);
  const auto block_begin = reinterpret_cast<std::uintptr_t>(block.data);
  const bool overlap = block_begin < whole_begin ? whole_begin - block_begin < block.bytes()
                                                 : block_begin - whole_begin < whole.bytes();
  // A block that begins before the whole is never in its place, however far it is.
  if (!overlap || block_begin == whole_begin + own) return;
  refuse(
      "out: it shares memory with array, expected memory of its own, or the same array for a call "
      "in place; copy one of them first");
}

namespace {

std::string type_text(const Side& side) {
  return side.type ? name(*side.type) : std::to_string(side.element_bytes) + " bytes an element";
}

}  // namespace

void check_elements(const Side& side, std::size_t size, const Side& like, const char* name) {
  if (side.element_bytes != like.element_bytes || side.type != like.type) {
    refuse(std::string(name) + ": its type is not that of the array sent: " + type_text(side) +
           ", expected " + type_text(like));
  }
  if (side.size != size) {
    refuse(std::string(name) + ": " + std::to_string(side.size) + " elements, expected " +
           std::to_string(size));
  }
}

void check_dealt(const Side& side, const Counts& counts, const char* name) {
  if (!side.shape.empty() && side.shape[0] == sum(counts)) return;
  refuse(std::string(name) + ": their sum is " + std::to_string(sum(counts)) +
         ", expected the first axis of " + text(side.shape));
}

void check_own_rows(const Side& side, std::size_t count) {
  if (side.rows() == count) return;
  refuse("counts: " + std::to_string(count) + " for this rank, expected " +
         std::to_string(side.rows()) + ", the rows of its array");
}

namespace {

// The text of a Python string, where it is one; it lives as long as the string.
std::optional<std::string_view> text_of(nb::handle given) {
  Py_ssize_t size = 0;
  const char* text =
      PyUnicode_Check(given.ptr()) ? PyUnicode_AsUTF8AndSize(given.ptr(), &size) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  return std::string_view(text, static_cast<std::size_t>(size));
}

std::string names_of_operations() {
  std::string known;
  for (int index = 0; index <= static_cast<int>(ReductionOp::bxor); ++index) {
    known += std::string(name(static_cast<ReductionOp>(index))) + ", ";
  }
  return known + "average";
}

}  // namespace

bool is_average(nb::handle op) {
  const auto text = text_of(op);
  return text && *text == "average";
}

int whole_number(nb::handle given, const char* name) {
  int value = 0;
  if (nb::try_cast(given, value)) return value;
  refuse(std::string(name) + ": not an integer: " + nb::repr(given).c_str());
}

nb::object named_operation(nb::handle given) {
  if (text_of(given)) return nb::borrow(given);
  static constinit nb::handle function;
  const auto make = [] {
    return nb::module_::import_("ropewalk.operations").attr("operation_name");
  };
  return nb::borrow(numpy::kept(function, make))(given);
}

ReductionOp operation(nb::handle given) {
  // A word that stands in a program is the same object everywhere.
  static constinit nb::handle sum;
  const auto make = [] { return nb::steal(PyUnicode_InternFromString("sum")); };
  if (given.is(numpy::kept(sum, make))) return ReductionOp::sum;
  const nb::object named = named_operation(given);
  const auto wanted = text_of(named);
  for (int index = 0; index <= static_cast<int>(ReductionOp::bxor); ++index) {
    const auto op = static_cast<ReductionOp>(index);
    if (wanted == name(op)) return op;
  }
  if (wanted == "average") refuse("op: average, which scans do not have; divide their sums");
  refuse(std::string("op: ") + nb::repr(given).c_str() + ", expected one of " +
         names_of_operations());
}

int root_of(const Collectives& on, nb::handle given) {
  int root = -1;
  // An int of Python may be larger than one of C.
  if (!nb::try_cast(given, root) && !PyLong_Check(given.ptr())) whole_number(given, "root");
  if (root >= 0 && root < on.size()) return root;
  refuse(std::string("root: ") + nb::repr(given).c_str() + ", expected 0 to " +
         std::to_string(on.size() - 1));
}

std::size_t equal_rows(const Collectives& on, const Side& side, const char* name) {
  const auto ranks = static_cast<std::size_t>(on.size());
  if (!side.shape.empty() && side.shape[0] % ranks == 0) return side.shape[0] / ranks;
  refuse(std::string(name) + ": shape " + text(side.shape) +
         ", expected a first axis that divides by the " + std::to_string(ranks) + " ranks");
}

Counts counts_of(const Collectives& on, nb::handle given, const char* name) {
  Counts counts;
  if (!nb::try_cast(given, counts)) {
    refuse(std::string(name) + ": not a list of integers of 0 or more, expected one a rank");
  }
  if (counts.size() == static_cast<std::size_t>(on.size())) return counts;
  refuse(std::string(name) + ": " + std::to_string(counts.size()) +
         " entries, expected one a rank, " + std::to_string(on.size()));
}

std::size_t sum(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

std::size_t dealt_row(const Side& side, const Counts& counts) {
  const std::size_t rows = sum(counts);
  return rows == 0 ? 0 : side.bytes() / rows;
}

Shape with_rows(const Side& side, std::size_t rows) {
  Shape shape = side.shape;
  if (shape.empty()) {
    shape.push_back(rows);
  } else {
    shape[0] = rows;
  }
  return shape;
}

Shape stacked(const Collectives& on, const Side& side) {
  Shape shape{static_cast<std::size_t>(on.size())};
  shape.insert(shape.end(), side.shape.begin(), side.shape.end());
  return shape;
}

}  // namespace ropewalk::python
