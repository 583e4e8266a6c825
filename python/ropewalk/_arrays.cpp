#include "_arrays.hpp"

namespace nb = nanobind;

namespace ropewalk::python {
namespace {

// The tables are for 8, 16, 32 and 64 bits.
constexpr ElementType signed_types[] = {ElementType::int8, ElementType::int16, ElementType::int32,
                                        ElementType::int64};
constexpr ElementType unsigned_types[] = {ElementType::uint8, ElementType::uint16,
                                          ElementType::uint32, ElementType::uint64};

std::optional<std::size_t> power_of_bytes(unsigned bits) {
  switch (bits) {
    case 8:
      return 0;
    case 16:
      return 1;
    case 32:
      return 2;
    case 64:
      return 3;
    default:
      return std::nullopt;
  }
}

std::optional<ElementType> floating_of(unsigned bits) {
  if (bits == 16) return ElementType::float16;
  if (bits == 32) return ElementType::float32;
  if (bits == 64) return ElementType::float64;
  return std::nullopt;
}

std::optional<ElementType> complex_of(unsigned bits) {
  if (bits == 64) return ElementType::complex_float32;
  if (bits == 128) return ElementType::complex_float64;
  return std::nullopt;
}

}  // namespace

std::optional<ElementType> type_of(nb::dlpack::dtype type) {
  using Code = nb::dlpack::dtype_code;
  if (type.lanes != 1) return std::nullopt;
  const auto power = power_of_bytes(type.bits);
  switch (static_cast<Code>(type.code)) {
    case Code::Int:
      return power ? std::optional(signed_types[*power]) : std::nullopt;
    case Code::UInt:
      return power ? std::optional(unsigned_types[*power]) : std::nullopt;
    case Code::Bool:
      return type.bits == 8 ? std::optional(ElementType::boolean) : std::nullopt;
    case Code::Bfloat:
      return type.bits == 16 ? std::optional(ElementType::bfloat16) : std::nullopt;
    case Code::Float:
      return floating_of(type.bits);
    case Code::Complex:
      return complex_of(type.bits);
    default:
      return std::nullopt;
  }
}

}  // namespace ropewalk::python
