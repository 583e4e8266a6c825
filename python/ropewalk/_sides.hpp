// The arrays of a collective as the caller gives them, and what is checked of its arguments. All
// checks throw Error(argument), with the name of the argument.
//
// An array is taken by the buffer protocol or DLPack as it is. What is neither, is not row-major,
// or has a type that those do not know (bfloat16 of ml_dtypes, structures) is first handed to
// _given.py, which gives an array that can be taken, or refuses.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/collectives.hpp"
#include "ropewalk/types.hpp"

namespace ropewalk::python {

using Shape = std::vector<std::size_t>;
using Counts = std::vector<std::size_t>;  // rows of the first axis, one entry a rank

// What DLPack has given for an array, and keeps its memory; none for an array of NumPy.
using View = std::shared_ptr<nanobind::ndarray<nanobind::ro>>;

// One array of a call.
struct Side {
  View view;  // keeps the memory, with `array`
  nanobind::object array;
  void* data = nullptr;
  std::size_t size = 0;  // elements
  std::size_t element_bytes = 0;
  std::optional<ElementType> type;
  Shape shape;

  std::size_t bytes() const { return size * element_bytes; }
  std::size_t rows() const { return shape.empty() ? 1 : shape[0]; }
  // Not of what the caller gives as `out`, which may have the elements in any shape: see dealt_row.
  std::size_t row_bytes() const { return rows() == 0 ? 0 : bytes() / rows(); }
};

// Byte counts and displacements of blocks that lie one behind the other.
struct Layout {
  Layout(const Counts& rows, std::size_t row_bytes) {
    std::size_t end = 0;
    for (const std::size_t count : rows) {
      counts.push_back(count * row_bytes);
      displacements.push_back(end);
      end += count * row_bytes;
    }
  }
  Counts counts;
  Counts displacements;
};

// What is sent: anything that NumPy makes an array of.
Side input(nanobind::handle given);
// What is sent again and again: an array that can be read where it lies.
Side input_in_place(nanobind::handle given);
// What is received into: an array that can be written where it lies. `name` is the argument's.
Side output(nanobind::handle given, const char* name = "out");
// The same of a message, whose array may also be in memory of a CUDA device: by DLPack, or by
// __cuda_array_interface__. Nobody but a Channel touches such memory.
Side message_input(nanobind::handle given);
Side message_input_in_place(nanobind::handle given);
Side message_output(nanobind::handle given);
// A new array of the type of what is sent; in the arena where it is large.
Side new_output(nanobind::handle sent, const Side& like, Shape shape);

std::size_t product(const Shape& shape);
std::size_t sum(const Counts& counts);
// The bytes of a row, of a side that has as many rows as the counts say, whatever its shape is.
std::size_t dealt_row(const Side& side, const Counts& counts);
Shape with_rows(const Side& side, std::size_t rows);     // other rows of the same shape
Shape stacked(const Collectives& on, const Side& side);  // one such array a rank

[[noreturn]] void refuse(const std::string& message);
int whole_number(nanobind::handle given, const char* name);
// The type of what is reduced; `given` is what the caller gave, where that is not side.array.
ElementType type(const Side& side, nanobind::handle given = {});
// Whether two arrays that are only moved have the same type, which `Side` does not know then.
void check_dtypes(const Side& send, nanobind::handle array, const Side& receive,
                  nanobind::handle out);
// Whether the sides share no memory but where the call is in place: the smaller is this rank's own
// block of the larger, and begins `own` bytes behind the larger one's beginning.
void check_apart(const Side& send, const Side& receive, std::size_t own);
void check_elements(const Side& side, std::size_t size, const Side& like, const char* name);
// Whether rows that are dealt out are those of the array.
void check_dealt(const Side& side, const Counts& counts, const char* name);
// Whether a rank that sends all its rows says as many of itself.
void check_own_rows(const Side& side, std::size_t count);
// A string as it is; the name of an operation of NumPy or mpi4py.
nanobind::object named_operation(nanobind::handle given);
ReductionOp operation(nanobind::handle given);
// An average is a sum that the library divides; allreduce, reduce and reduce_scatter have it.
bool is_average(nanobind::handle op);
int root_of(const Collectives& on, nanobind::handle given);
Counts counts_of(const Collectives& on, nanobind::handle given, const char* name);
// Rows of the first axis that each rank gets when all get as many.
std::size_t equal_rows(const Collectives& on, const Side& side, const char* name);

// A call of an object that takes one at a time. It begins and ends with the GIL, which guards
// `in_use`.
class OneCall {
 public:
  // `object` is its name in the error, as in "channel".
  OneCall(bool& in_use, const char* object) : in_use_(in_use) {
    if (in_use_) {
      refuse(std::string(object) + ": another thread is in a call of it; make a " + object +
             " for each thread");
    }
    in_use_ = true;
  }
  ~OneCall() { in_use_ = false; }
  OneCall(const OneCall&) = delete;
  OneCall& operator=(const OneCall&) = delete;

 private:
  bool& in_use_;
};

}  // namespace ropewalk::python
