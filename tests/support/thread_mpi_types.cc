// This file has the datatypes and operations of thread_mpi, written for plainness.
#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

#include "support/thread_mpi_world.hpp"

namespace ropewalk::test {
namespace {

using mpi::DatatypeName;
using mpi::OpName;

template <class Value>
struct Located {  // the pair types of MPI_MINLOC and MPI_MAXLOC
  Value value;
  int index;
};

// Calls use(T{}) with the C type of a predefined datatype; false for one without.
template <class Use>
bool with_type(DatatypeName type, const Use& use) {
  switch (type) {
    case DatatypeName::signed_char:
    case DatatypeName::int8:
      return use(std::int8_t{}), true;
    case DatatypeName::short_:
    case DatatypeName::int16:
      return use(std::int16_t{}), true;
    case DatatypeName::int_:
    case DatatypeName::int32:
      return use(std::int32_t{}), true;
    case DatatypeName::long_:
    case DatatypeName::long_long:
    case DatatypeName::aint:
    case DatatypeName::count:
    case DatatypeName::offset:
    case DatatypeName::int64:
      return use(std::int64_t{}), true;
    case DatatypeName::byte_:
    case DatatypeName::unsigned_char:
    case DatatypeName::uint8:
      return use(std::uint8_t{}), true;
    case DatatypeName::unsigned_short:
    case DatatypeName::uint16:
      return use(std::uint16_t{}), true;
    case DatatypeName::unsigned_:
    case DatatypeName::uint32:
      return use(std::uint32_t{}), true;
    case DatatypeName::unsigned_long:
    case DatatypeName::unsigned_long_long:
    case DatatypeName::uint64:
      return use(std::uint64_t{}), true;
    case DatatypeName::c_bool:
    case DatatypeName::cxx_bool:
      return use(bool{}), true;
    case DatatypeName::char_:
    case DatatypeName::packed:
      return use(char{}), true;
    case DatatypeName::wchar:
      return use(wchar_t{}), true;
    case DatatypeName::float_:
      return use(float{}), true;
    case DatatypeName::double_:
      return use(double{}), true;
    case DatatypeName::long_double:
      return use(0.0L), true;
    case DatatypeName::c_float_complex:
    case DatatypeName::cxx_float_complex:
      return use(std::complex<float>{}), true;
    case DatatypeName::c_double_complex:
    case DatatypeName::cxx_double_complex:
      return use(std::complex<double>{}), true;
    case DatatypeName::c_long_double_complex:
    case DatatypeName::cxx_long_double_complex:
      return use(std::complex<long double>{}), true;
    case DatatypeName::float_int:
      return use(Located<float>{}), true;
    case DatatypeName::double_int:
      return use(Located<double>{}), true;
    case DatatypeName::long_int:
      return use(Located<long>{}), true;
    case DatatypeName::two_int:
      return use(Located<int>{}), true;
    case DatatypeName::short_int:
      return use(Located<short>{}), true;
    case DatatypeName::long_double_int:
      return use(Located<long double>{}), true;
    default:
      return false;
  }
}

template <class T>
struct is_located : std::false_type {};
template <class T>
struct is_located<Located<T>> : std::true_type {};

// Integers wrap around, as in every MPI: in C++ only unsigned ones may.
template <class T>
auto unwrapped(const T& value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::uint64_t>(value);
  } else {
    return value;
  }
}

template <class T>
bool apply(OpName op, const T& a, T& b) {  // b = a op b
  if constexpr (is_located<T>::value) {
    const bool min = op == OpName::minloc;
    if (!min && op != OpName::maxloc) return false;
    if (a.value == b.value) return b.index = std::min(a.index, b.index), true;
    if ((a.value < b.value) == min) b = a;
    return true;
  } else {
    if (op == OpName::replace) return b = a, true;
    if (op == OpName::no_op) return true;
    const auto x = unwrapped(a), y = unwrapped(b);
    if (op == OpName::sum) return b = static_cast<T>(x + y), true;
    if (op == OpName::prod) return b = static_cast<T>(x * y), true;
    if constexpr (std::is_arithmetic_v<T>) {
      if (op == OpName::max) return b = std::max(a, b), true;
      if (op == OpName::min) return b = std::min(a, b), true;
      if (op == OpName::land) return b = static_cast<T>(a && b), true;
      if (op == OpName::lor) return b = static_cast<T>(a || b), true;
      if (op == OpName::lxor) return b = static_cast<T>(!a != !b), true;
    }
    if constexpr (std::is_integral_v<T>) {
      if (op == OpName::band) return b = static_cast<T>(a & b), true;
      if (op == OpName::bor) return b = static_cast<T>(a | b), true;
      if (op == OpName::bxor) return b = static_cast<T>(a ^ b), true;
    }
    return false;
  }
}

template <class Name, std::size_t n>
bool find(const std::array<Word, n>& handles, Word handle, Name& out) {
  const auto found = std::find(handles.begin(), handles.end(), handle);
  out = static_cast<Name>(found - handles.begin());
  return found != handles.end();
}

template <class T>
bool combine_as(OpName op, const void* from, void* into, std::size_t count) {
  const auto* a = static_cast<const std::byte*>(from);
  auto* b = static_cast<std::byte*>(into);
  for (std::size_t i = 0; i < count; ++i) {
    T x, y;  // copied: buffers of MPI need not be aligned
    std::memcpy(static_cast<void*>(&x), a + i * sizeof(T), sizeof(T));
    std::memcpy(static_cast<void*>(&y), b + i * sizeof(T), sizeof(T));
    if (!apply(op, x, y)) return false;
    std::memcpy(b + i * sizeof(T), static_cast<const void*>(&y), sizeof(T));
  }
  return true;
}

}  // namespace

std::size_t type_bytes(const World& world, Word type) {
  const auto derived = world.derived_types.find(type);
  if (derived != world.derived_types.end()) return derived->second;
  DatatypeName name{};
  std::size_t bytes = 0;
  if (!find(abi().datatypes, type, name)) return 0;
  with_type(name, [&](auto value) { bytes = sizeof value; });
  return bytes;
}

bool combine(Word op, Word type, const void* from, void* into, std::size_t count) {
  OpName op_name{};
  DatatypeName type_name{};
  if (!find(abi().ops, op, op_name) || !find(abi().datatypes, type, type_name)) return false;
  bool known = false;
  with_type(type_name,
            [&](auto value) { known = combine_as<decltype(value)>(op_name, from, into, count); });
  return known;
}

int unknown_operation(World& world) { return world.error("an operation thread_mpi has not got"); }

namespace {

void copy(const World& world, const void* from, void* into, Count count, Word type) {
  const std::size_t bytes = static_cast<std::size_t>(count) * type_bytes(world, type);
  if (bytes > 0) std::memcpy(into, from, bytes);
}

template <class Number>
int fake_reduce_local(const void* from, void* into, Number count, Word type, Word op) {
  return in_call("MPI_Reduce_local", [&](Here& here) {
    const bool known = combine(op, type, from, into, static_cast<std::size_t>(count));
    return known ? 0 : unknown_operation(here.world);
  });
}

// ---- datatypes: predefined ones and contiguous ones of them -----------------------------------

int fake_type_size_x(Word type, Count* bytes) {
  return in_call("MPI_Type_size_x", [&](Here& here) {
    *bytes = static_cast<Count>(type_bytes(here.world, type));
    return *bytes > 0 ? 0 : here.world.error("not a datatype");
  });
}

int fake_type_extent(Word type, Count* lower, Count* extent) {
  *lower = 0;
  return fake_type_size_x(type, extent);
}

int fake_type_contiguous(int count, Word type, Word* out) {
  return in_call("MPI_Type_contiguous", [&](Here& here) {
    *out = here.world.next_handle++;
    here.world.derived_types[*out] = static_cast<std::size_t>(count) * type_bytes(here.world, type);
    return 0;
  });
}

// Types without gaps: a struct is its bytes.
int fake_type_struct(int count, const int* lengths, const Count*, const Word* types, Word* out) {
  return in_call("MPI_Type_create_struct", [&](Here& here) {
    std::size_t bytes = 0;
    for (int i = 0; i < count; ++i) {
      bytes += static_cast<std::size_t>(lengths[i]) * type_bytes(here.world, types[i]);
    }
    *out = here.world.next_handle++;
    here.world.derived_types[*out] = bytes;
    return 0;
  });
}

int fake_type_resized(Word type, Count, Count, Word* out) {
  return fake_type_contiguous(1, type, out);
}

int fake_type_free(Word* type) {
  return in_call("MPI_Type_free", [&](Here& here) {
    if (here.world.derived_types.erase(*type) == 0) return here.world.error("not a derived type");
    *type = abi().datatype_null;
    return 0;
  });
}

template <class Number>
int fake_pack(const void* data, Number count, Word type, void* out, Number, Number* position,
              Word) {
  return in_call("MPI_Pack", [&](Here& here) {
    copy(here.world, data, static_cast<std::byte*>(out) + *position, count, type);
    *position += static_cast<Number>(count * static_cast<Count>(type_bytes(here.world, type)));
    return 0;
  });
}

template <class Number>
int fake_unpack(const void* in, Number, Number* position, void* data, Number count, Word type,
                Word) {
  return in_call("MPI_Unpack", [&](Here& here) {
    copy(here.world, static_cast<const std::byte*>(in) + *position, data, count, type);
    *position += static_cast<Number>(count * static_cast<Count>(type_bytes(here.world, type)));
    return 0;
  });
}

}  // namespace

void fill_types(mpi::Functions& call) {
  call.type_size_x = &fake_type_size_x;
  call.type_get_extent = &fake_type_extent;
  call.type_get_true_extent = &fake_type_extent;
  call.type_contiguous = &fake_type_contiguous;
  call.type_create_struct = &fake_type_struct;
  call.type_create_resized = &fake_type_resized;
  call.type_commit = [](Word*) { return 0; };
  call.type_free = &fake_type_free;
  call.pack = &fake_pack<int>;
  call.unpack = &fake_unpack<int>;
  call.op_commutative = [](Word, int* flag) { return *flag = 1, 0; };
  call.reduce_local = &fake_reduce_local<int>;
}

void fill_large_types(mpi::Functions& call) {
  call.pack_c = &fake_pack<Count>;
  call.unpack_c = &fake_unpack<Count>;
  call.reduce_local_c = &fake_reduce_local<Count>;
}

}  // namespace ropewalk::test
