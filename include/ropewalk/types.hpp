// What can be reduced: element types, operations, and which pairs of them the MPI standard allows.
//
// Everything here is a fact about types, so it is constexpr and needs no library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ropewalk {

// Elements as they lie in memory, in the layout of the C types of this machine. Several datatypes
// of MPI (MPI_INT, MPI_LONG, MPI_AINT, ...) are one of these, by their size and signedness.
enum class ElementType : int {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float16,   // IEEE 754 binary16
  bfloat16,  // the upper half of a binary32
  float32,
  float64,
  long_double,
  complex_float32,
  complex_float64,
  complex_long_double,
  boolean,    // C++ bool, MPI_C_BOOL: one byte, 0 is false
  byte,       // MPI_BYTE
  character,  // MPI_CHAR: a printable character, no arithmetic
  wide_character,
  // Pairs of a value and an int index, as C structs: MPI_FLOAT_INT, ..., MPI_2INT.
  float_int,
  double_int,
  long_int,
  two_int,
  short_int,
  long_double_int
};
inline constexpr int element_type_count = 26;

enum class ReductionOp : int {
  max,
  min,
  sum,
  prod,
  land,
  band,
  lor,
  bor,
  lxor,
  bxor,
  maxloc,
  minloc,
  replace,  // the last operand; MPI allows it in accumulates only
  no_op     // the first operand; likewise
};
inline constexpr int reduction_op_count = 14;

struct FloatInt {
  float value;
  int index;
};
struct DoubleInt {
  double value;
  int index;
};
struct LongInt {
  long value;
  int index;
};
struct TwoInt {
  int value;
  int index;
};
struct ShortInt {
  short value;
  int index;
};
struct LongDoubleInt {
  long double value;
  int index;
};

// Bytes from one element to the next: the extent in MPI's words, gaps of pairs included.
// 0 for a value that is no ElementType.
constexpr std::size_t size_of(ElementType type) noexcept {
  switch (type) {
    case ElementType::int8:
    case ElementType::uint8:
    case ElementType::boolean:
    case ElementType::byte:
    case ElementType::character:
      return 1;
    case ElementType::int16:
    case ElementType::uint16:
    case ElementType::float16:
    case ElementType::bfloat16:
      return 2;
    case ElementType::int32:
    case ElementType::uint32:
    case ElementType::float32:
      return 4;
    case ElementType::int64:
    case ElementType::uint64:
    case ElementType::float64:
    case ElementType::complex_float32:
      return 8;
    case ElementType::complex_float64:
      return 16;
    case ElementType::long_double:
      return sizeof(long double);
    case ElementType::complex_long_double:
      return 2 * sizeof(long double);
    case ElementType::wide_character:
      return sizeof(wchar_t);
    case ElementType::float_int:
      return sizeof(FloatInt);
    case ElementType::double_int:
      return sizeof(DoubleInt);
    case ElementType::long_int:
      return sizeof(LongInt);
    case ElementType::two_int:
      return sizeof(TwoInt);
    case ElementType::short_int:
      return sizeof(ShortInt);
    case ElementType::long_double_int:
      return sizeof(LongDoubleInt);
  }
  return 0;
}

constexpr const char* name(ElementType type) noexcept {
  constexpr const char* names[element_type_count] = {"int8",
                                                     "uint8",
                                                     "int16",
                                                     "uint16",
                                                     "int32",
                                                     "uint32",
                                                     "int64",
                                                     "uint64",
                                                     "float16",
                                                     "bfloat16",
                                                     "float32",
                                                     "float64",
                                                     "long_double",
                                                     "complex_float32",
                                                     "complex_float64",
                                                     "complex_long_double",
                                                     "boolean",
                                                     "byte",
                                                     "character",
                                                     "wide_character",
                                                     "float_int",
                                                     "double_int",
                                                     "long_int",
                                                     "two_int",
                                                     "short_int",
                                                     "long_double_int"};
  const int index = static_cast<int>(type);
  return index >= 0 && index < element_type_count ? names[index] : "unknown type";
}

constexpr const char* name(ReductionOp op) noexcept {
  constexpr const char* names[reduction_op_count] = {"max",    "min",    "sum",     "prod", "land",
                                                     "band",   "lor",    "bor",     "lxor", "bxor",
                                                     "maxloc", "minloc", "replace", "no_op"};
  const int index = static_cast<int>(op);
  return index >= 0 && index < reduction_op_count ? names[index] : "unknown operation";
}

constexpr bool is_integer(ElementType type) noexcept {
  return type >= ElementType::int8 && type <= ElementType::uint64;
}
constexpr bool is_floating(ElementType type) noexcept {
  return type >= ElementType::float16 && type <= ElementType::long_double;
}
constexpr bool is_complex(ElementType type) noexcept {
  return type >= ElementType::complex_float32 && type <= ElementType::complex_long_double;
}
constexpr bool is_pair(ElementType type) noexcept {
  return type >= ElementType::float_int && type <= ElementType::long_double_int;
}

// MPI 4.1, section 6.9.2 (and 6.9.4 for pairs); float16 and bfloat16 count as floating point.
// replace and no_op are defined for every type.
constexpr bool supports(ReductionOp op, ElementType type) noexcept {
  if (size_of(type) == 0) return false;
  switch (op) {
    case ReductionOp::max:
    case ReductionOp::min:
      return is_integer(type) || is_floating(type);
    case ReductionOp::sum:
    case ReductionOp::prod:
      return is_integer(type) || is_floating(type) || is_complex(type);
    case ReductionOp::land:
    case ReductionOp::lor:
    case ReductionOp::lxor:
      return is_integer(type) || type == ElementType::boolean;
    case ReductionOp::band:
    case ReductionOp::bor:
    case ReductionOp::bxor:
      return is_integer(type) || type == ElementType::byte;
    case ReductionOp::maxloc:
    case ReductionOp::minloc:
      return is_pair(type);
    case ReductionOp::replace:
    case ReductionOp::no_op:
      return true;
  }
  return false;
}

}  // namespace ropewalk
