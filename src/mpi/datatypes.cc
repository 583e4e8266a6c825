#include "mpi/datatypes.hpp"

#include <algorithm>
#include <climits>

#include "mpi/large_count.hpp"
#include "mpi/layout.hpp"
#include "mpi/library.hpp"

namespace ropewalk::mpi {
namespace {

// The types are found by their sizes, because a compiler flag may make Fortran's INTEGER, REAL and
// DOUBLE PRECISION wider.
std::optional<ElementType> fortran_type(DatatypeName name, std::int64_t bytes) {
  switch (name) {
    case DatatypeName::character:
      return ElementType::character;
    case DatatypeName::integer:
    case DatatypeName::integer1:
    case DatatypeName::integer2:
    case DatatypeName::integer4:
    case DatatypeName::integer8:
      if (bytes == 1) return ElementType::int8;
      if (bytes == 2) return ElementType::int16;
      if (bytes == 4) return ElementType::int32;
      if (bytes == 8) return ElementType::int64;
      return std::nullopt;
    case DatatypeName::real:
    case DatatypeName::double_precision:
    case DatatypeName::real4:
    case DatatypeName::real8:
      if (bytes == 4) return ElementType::float32;
      if (bytes == 8) return ElementType::float64;
      return std::nullopt;
    case DatatypeName::complex:
    case DatatypeName::double_complex:
    case DatatypeName::complex8:
    case DatatypeName::complex16:
      if (bytes == 8) return ElementType::complex_float32;
      if (bytes == 16) return ElementType::complex_float64;
      return std::nullopt;
    case DatatypeName::two_integer:
      if (bytes == sizeof(TwoInt)) return ElementType::two_int;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<ElementType> c_type(DatatypeName name) {
  switch (name) {
    case DatatypeName::byte_:
      return ElementType::byte;
    case DatatypeName::char_:
      return ElementType::character;
    case DatatypeName::signed_char:
    case DatatypeName::int8:
      return ElementType::int8;
    case DatatypeName::unsigned_char:
    case DatatypeName::uint8:
      return ElementType::uint8;
    case DatatypeName::short_:
    case DatatypeName::int16:
      return ElementType::int16;
    case DatatypeName::unsigned_short:
    case DatatypeName::uint16:
      return ElementType::uint16;
    case DatatypeName::int_:
    case DatatypeName::int32:
      return ElementType::int32;
    case DatatypeName::unsigned_:
    case DatatypeName::uint32:
      return ElementType::uint32;
    case DatatypeName::long_:
    case DatatypeName::long_long:
    case DatatypeName::int64:
    case DatatypeName::aint:
    case DatatypeName::count:
    case DatatypeName::offset:
      return ElementType::int64;
    case DatatypeName::unsigned_long:
    case DatatypeName::unsigned_long_long:
    case DatatypeName::uint64:
      return ElementType::uint64;
    case DatatypeName::float_:
      return ElementType::float32;
    case DatatypeName::double_:
      return ElementType::float64;
    case DatatypeName::long_double:
      return ElementType::long_double;
    case DatatypeName::wchar:
      return ElementType::wide_character;
    case DatatypeName::c_bool:
    case DatatypeName::cxx_bool:
      return ElementType::boolean;
    case DatatypeName::c_float_complex:
    case DatatypeName::cxx_float_complex:
      return ElementType::complex_float32;
    case DatatypeName::c_double_complex:
    case DatatypeName::cxx_double_complex:
      return ElementType::complex_float64;
    case DatatypeName::c_long_double_complex:
    case DatatypeName::cxx_long_double_complex:
      return ElementType::complex_long_double;
    case DatatypeName::float_int:
      return ElementType::float_int;
    case DatatypeName::double_int:
      return ElementType::double_int;
    case DatatypeName::long_int:
      return ElementType::long_int;
    case DatatypeName::two_int:
      return ElementType::two_int;
    case DatatypeName::short_int:
      return ElementType::short_int;
    case DatatypeName::long_double_int:
      return ElementType::long_double_int;
    default:
      return std::nullopt;
  }
}

// The entries are in the order of ElementType; packed stands for "none".
constexpr DatatypeName names_of_types[] = {DatatypeName::int8,
                                           DatatypeName::uint8,
                                           DatatypeName::int16,
                                           DatatypeName::uint16,
                                           DatatypeName::int32,
                                           DatatypeName::uint32,
                                           DatatypeName::int64,
                                           DatatypeName::uint64,
                                           DatatypeName::packed,
                                           DatatypeName::packed,
                                           DatatypeName::float_,
                                           DatatypeName::double_,
                                           DatatypeName::long_double,
                                           DatatypeName::c_float_complex,
                                           DatatypeName::c_double_complex,
                                           DatatypeName::c_long_double_complex,
                                           DatatypeName::c_bool,
                                           DatatypeName::byte_,
                                           DatatypeName::char_,
                                           DatatypeName::wchar,
                                           DatatypeName::float_int,
                                           DatatypeName::double_int,
                                           DatatypeName::long_int,
                                           DatatypeName::two_int,
                                           DatatypeName::short_int,
                                           DatatypeName::long_double_int};
static_assert(std::size(names_of_types) == element_type_count);

// ReductionOp and OpName have the same order.
static_assert(static_cast<int>(ReductionOp::max) == static_cast<int>(OpName::max) &&
              static_cast<int>(ReductionOp::maxloc) == static_cast<int>(OpName::maxloc) &&
              static_cast<int>(ReductionOp::no_op) == static_cast<int>(OpName::no_op) &&
              reduction_op_count == op_names);

// So many elements at once go to a call without 64-bit counts.
constexpr std::size_t chunk = std::size_t{1} << 30;

// MPI_Pack counts its bytes in an int as well.
std::size_t pack_chunk(std::int64_t size) {
  return std::max<std::size_t>(1,
                               chunk / static_cast<std::size_t>(std::max<std::int64_t>(1, size)));
}

// MPICH 5.0.2 refuses MPI_BOTTOM with more than one element of a type that holds addresses.
std::size_t step_from(const void* data, std::int64_t size) {
  return data == nullptr ? 1 : pack_chunk(size);
}

}  // namespace

std::optional<ElementType> element_type(Datatype type) {
  const std::optional<DatatypeName> name = name_of(type);
  if (!name) return std::nullopt;
  if (*name >= DatatypeName::character) return fortran_type(*name, type_size(type));
  return c_type(*name);
}

bool is_predefined(Datatype type) { return library().datatypes.find(type.value).has_value(); }

std::optional<ReductionOp> reduction_op(Op op) {
  const std::optional<OpName> name = library().ops.find(op.value);
  if (!name) return std::nullopt;
  return static_cast<ReductionOp>(*name);
}

Datatype datatype(ElementType type) {
  const DatatypeName name = names_of_types[static_cast<std::size_t>(type)];
  return name == DatatypeName::packed ? datatype_null() : Datatype{library().abi.datatype(name)};
}

Op op(ReductionOp op) { return {library().abi.op(static_cast<OpName>(op))}; }

Datatype datatype_null() { return {library().abi.datatype_null}; }

std::int64_t type_size(Datatype type) {
  Count bytes = 0;
  check(library().call.type_size_x(type.value, &bytes), "MPI_Type_size_x");
  return bytes;
}

TypeExtent type_extent(Datatype type) {
  TypeExtent result;
  const Functions& call = library().call;
  check(call.type_get_extent(type.value, &result.lower, &result.bytes), "MPI_Type_get_extent");
  check(call.type_get_true_extent(type.value, &result.true_lower, &result.true_bytes),
        "MPI_Type_get_true_extent");
  return result;
}

bool commutative(Op op) {
  int flag = 0;
  check(library().call.op_commutative(op.value, &flag), "MPI_Op_commutative");
  return flag != 0;
}

void reduce_local(const void* in, void* inout, std::size_t count, Datatype type, Op op) {
  const Functions& call = library().call;
  if (!fits_int(count) && call.reduce_local_c != nullptr) {
    return check(call.reduce_local_c(in, inout, static_cast<Count>(count), type.value, op.value),
                 "MPI_Reduce_local_c");
  }
  const std::int64_t extent = fits_int(count) ? 0 : type_extent(type).bytes;
  for (std::size_t done = 0; done < count || done == 0; done += chunk) {
    const std::size_t now = fits_int(count) ? count : std::min(chunk, count - done);
    const std::int64_t offset = static_cast<std::int64_t>(done) * extent;
    check(call.reduce_local(static_cast<const std::byte*>(in) + offset,
                            static_cast<std::byte*>(inout) + offset, static_cast<int>(now),
                            type.value, op.value),
          "MPI_Reduce_local");
    if (fits_int(count)) break;
  }
}

namespace {

// Describes elements at an offset from `start`, as MPI_Pack and MPI_Unpack take them. MPICH 4.0
// refuses MPI_BOTTOM in both calls, so it gets the same places counted from another address.
class Elements {
 public:
  Elements(const void* start, std::int64_t offset, int number, Datatype element)
      : data(reinterpret_cast<void*>(address(start) + static_cast<std::uintptr_t>(offset))),
        count(number),
        type(element.value) {
    if (data == nullptr && library().abi.int_handles) count_from_elsewhere();
  }
  ~Elements() {
    if (made_ != 0) library().call.type_free(&made_);
  }
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;

  void* data;
  int count;
  Word type;

 private:
  void count_from_elsewhere() {
    const Functions& call = library().call;
    const auto place = -static_cast<Count>(address(this));
    check(call.type_create_struct(1, &count, &place, &type, &made_), "MPI_Type_create_struct");
    check(call.type_commit(&made_), "MPI_Type_commit");
    data = this;
    count = 1;
    type = made_;
  }

  Word made_ = 0;
};

}  // namespace

namespace {

// MPI_Pack and MPI_Unpack count bytes in an int. An element of more goes through their forms for
// large counts, or, where the MPI has none, is packed piece by piece by ropewalk.
bool fits_pack(std::int64_t size) { return size <= INT_MAX; }

void* element(const void* data, std::int64_t offset) {
  return reinterpret_cast<void*>(address(data) + static_cast<std::uintptr_t>(offset));
}

void pack_by_layout(const void* data, std::size_t count, Datatype type, std::byte* packed) {
  const TypeLayout layout(type);
  const std::int64_t extent = type_extent(type).bytes;
  const std::int64_t size = type_size(type);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
    layout.pack(element(data, i * extent), packed + i * size);
  }
}

void unpack_by_layout(const std::byte* packed, void* data, std::size_t count, Datatype type) {
  const TypeLayout layout(type);
  const std::int64_t extent = type_extent(type).bytes;
  const std::int64_t size = type_size(type);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
    layout.unpack(packed + i * size, element(data, i * extent));
  }
}

void pack_large(const void* data, std::size_t count, Datatype type, std::byte* packed, Comm comm) {
  const auto function = library().call.pack_c;
  if (function == nullptr) return pack_by_layout(data, count, type, packed);
  const Count size = type_size(type);
  const std::int64_t extent = type_extent(type).bytes;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
    const Elements from(data, i * extent, 1, type);
    Count position = 0;
    check(
        function(from.data, from.count, from.type, packed + i * size, size, &position, comm.value),
        "MPI_Pack_c");
  }
}

void unpack_large(const std::byte* packed, void* data, std::size_t count, Datatype type,
                  Comm comm) {
  const auto function = library().call.unpack_c;
  if (function == nullptr) return unpack_by_layout(packed, data, count, type);
  const Count size = type_size(type);
  const std::int64_t extent = type_extent(type).bytes;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
    const Elements into(data, i * extent, 1, type);
    Count position = 0;
    check(
        function(packed + i * size, size, &position, into.data, into.count, into.type, comm.value),
        "MPI_Unpack_c");
  }
}

}  // namespace

void pack(const void* data, std::size_t count, Datatype type, void* packed, Comm comm) {
  const std::int64_t size = type_size(type);
  if (!fits_pack(size)) {
    return pack_large(data, count, type, static_cast<std::byte*>(packed), comm);
  }
  const std::int64_t extent = type_extent(type).bytes;
  const std::size_t step = step_from(data, size);
  for (std::size_t done = 0; done < count; done += step) {
    const std::size_t now = std::min(step, count - done);
    const auto into = static_cast<std::int64_t>(done) * size;
    const Elements from(data, static_cast<std::int64_t>(done) * extent, static_cast<int>(now),
                        type);
    int position = 0;
    check(library().call.pack(
              from.data, from.count, from.type, static_cast<std::byte*>(packed) + into,
              static_cast<int>(static_cast<std::int64_t>(now) * size), &position, comm.value),
          "MPI_Pack");
  }
}

void unpack(const void* packed, void* data, std::size_t count, Datatype type, Comm comm) {
  const std::int64_t size = type_size(type);
  if (!fits_pack(size)) {
    return unpack_large(static_cast<const std::byte*>(packed), data, count, type, comm);
  }
  const std::int64_t extent = type_extent(type).bytes;
  const std::size_t step = step_from(data, size);
  for (std::size_t done = 0; done < count; done += step) {
    const std::size_t now = std::min(step, count - done);
    const auto from = static_cast<std::int64_t>(done) * size;
    const Elements into(data, static_cast<std::int64_t>(done) * extent, static_cast<int>(now),
                        type);
    int position = 0;
    check(library().call.unpack(static_cast<const std::byte*>(packed) + from,
                                static_cast<int>(static_cast<std::int64_t>(now) * size), &position,
                                into.data, into.count, into.type, comm.value),
          "MPI_Unpack");
  }
}

}  // namespace ropewalk::mpi
