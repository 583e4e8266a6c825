// This file tells which pairs of a datatype and an operation MPI combines, by the standard and by
// asking the MPI.
#include <array>
#include <cstddef>

#include "mpi/datatypes.hpp"
#include "mpi/errors_returned.hpp"
#include "mpi/layout.hpp"
#include "mpi/library.hpp"

namespace ropewalk::mpi {
namespace {

// MPI 5.0, section 6.9.2; pairs are in 6.9.4. Characters have no operation.
enum class Class {
  none,
  c_integer,
  fortran_integer,  // and MPI_AINT, MPI_OFFSET, MPI_COUNT
  floating,
  logical,
  complex,
  byte,
  pair
};

struct Members {
  DatatypeName first;
  DatatypeName last;
  Class of;
};

// The entries are in the order of DatatypeName; a type that is left out has no operation.
constexpr Members classes[] = {
    {DatatypeName::byte_, DatatypeName::byte_, Class::byte},
    {DatatypeName::signed_char, DatatypeName::unsigned_long_long, Class::c_integer},
    {DatatypeName::float_, DatatypeName::long_double, Class::floating},
    {DatatypeName::c_bool, DatatypeName::c_bool, Class::logical},
    {DatatypeName::int8, DatatypeName::uint64, Class::c_integer},
    {DatatypeName::aint, DatatypeName::offset, Class::fortran_integer},
    {DatatypeName::c_float_complex, DatatypeName::c_long_double_complex, Class::complex},
    {DatatypeName::cxx_bool, DatatypeName::cxx_bool, Class::logical},
    {DatatypeName::cxx_float_complex, DatatypeName::cxx_long_double_complex, Class::complex},
    {DatatypeName::float_int, DatatypeName::long_double_int, Class::pair},
    {DatatypeName::logical, DatatypeName::logical, Class::logical},
    {DatatypeName::integer, DatatypeName::integer, Class::fortran_integer},
    {DatatypeName::real, DatatypeName::double_precision, Class::floating},
    {DatatypeName::complex, DatatypeName::double_complex, Class::complex},
    {DatatypeName::two_integer, DatatypeName::two_double_precision, Class::pair},
    {DatatypeName::integer1, DatatypeName::integer8, Class::fortran_integer},
    {DatatypeName::real4, DatatypeName::real16, Class::floating},
    {DatatypeName::complex8, DatatypeName::complex32, Class::complex},
    {DatatypeName::integer16, DatatypeName::integer16, Class::fortran_integer},
    {DatatypeName::real2, DatatypeName::real2, Class::floating},
    {DatatypeName::complex4, DatatypeName::complex4, Class::complex},
    {DatatypeName::logical1, DatatypeName::logical16, Class::logical}};

Class class_of(Datatype type) {
  const auto name = name_of(type);
  if (!name) return Class::none;
  for (const Members& members : classes) {
    if (*name >= members.first && *name <= members.last) return members.of;
  }
  return Class::none;
}

}  // namespace

bool is_integral(Datatype type) {
  const auto name = name_of(type);
  if (name == DatatypeName::char_ || name == DatatypeName::wchar ||
      name == DatatypeName::character) {
    return true;
  }
  switch (class_of(type)) {
    case Class::c_integer:
    case Class::fortran_integer:
    case Class::logical:
    case Class::byte:
      return true;
    default:
      return false;
  }
}

bool is_shared_integer(Datatype type) { return class_of(type) == Class::fortran_integer; }

bool defined(ReductionOp op, Datatype type) {
  const Class of = class_of(type);
  switch (op) {
    case ReductionOp::max:
    case ReductionOp::min:
      return of == Class::c_integer || of == Class::fortran_integer || of == Class::floating;
    case ReductionOp::sum:
    case ReductionOp::prod:
      return of == Class::c_integer || of == Class::fortran_integer || of == Class::floating ||
             of == Class::complex;
    case ReductionOp::land:
    case ReductionOp::lor:
    case ReductionOp::lxor:
      return of == Class::c_integer || of == Class::logical;
    case ReductionOp::band:
    case ReductionOp::bor:
    case ReductionOp::bxor:
      return of == Class::c_integer || of == Class::fortran_integer || of == Class::byte;
    case ReductionOp::maxloc:
    case ReductionOp::minloc:
      return of == Class::pair;
    default:
      return false;
  }
}

// Since MPI 4, errors that belong to no communicator go to MPI_COMM_SELF; before, they went to
// MPI_COMM_WORLD.
bool accepts(Datatype type, Op op) {
  if (!ErrorsReturned::possible()) return false;
  const ErrorsReturned of_world(comm_world());
  const ErrorsReturned of_self(comm_self());
  alignas(64) const std::array<std::byte, 64> in{};
  alignas(64) std::array<std::byte, 64> inout{};
  return library().call.reduce_local(in.data(), inout.data(), 1, type.value, op.value) == 0;
}

}  // namespace ropewalk::mpi
