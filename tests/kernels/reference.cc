// The scalar reference: see reference.hpp.
#include "kernels/reference.hpp"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <type_traits>

namespace ropewalk::testing {

namespace {

template <ElementType type>
struct Half {
  std::uint16_t bits;
};
using Float16 = Half<ElementType::float16>;
using Bfloat16 = Half<ElementType::bfloat16>;
struct Boolean {
  std::uint8_t value;
};

template <class T>
constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;
template <class T>
constexpr bool is_complex_number = false;
template <class T>
constexpr bool is_complex_number<std::complex<T>> = true;
template <class T>
concept PairType = requires(T t) {
  t.value;
  t.index;
};

// Calls f with a null pointer to the C++ type of the elements.
template <class F>
decltype(auto) with_type(ElementType type, F f) {
  switch (type) {
    case ElementType::int8:
      return f(static_cast<std::int8_t*>(nullptr));
    case ElementType::uint8:
    case ElementType::byte:
    case ElementType::character:
      return f(static_cast<std::uint8_t*>(nullptr));
    case ElementType::int16:
      return f(static_cast<std::int16_t*>(nullptr));
    case ElementType::uint16:
      return f(static_cast<std::uint16_t*>(nullptr));
    case ElementType::int32:
    case ElementType::wide_character:
      return f(static_cast<std::int32_t*>(nullptr));
    case ElementType::uint32:
      return f(static_cast<std::uint32_t*>(nullptr));
    case ElementType::int64:
      return f(static_cast<std::int64_t*>(nullptr));
    case ElementType::uint64:
      return f(static_cast<std::uint64_t*>(nullptr));
    case ElementType::float16:
      return f(static_cast<Float16*>(nullptr));
    case ElementType::bfloat16:
      return f(static_cast<Bfloat16*>(nullptr));
    case ElementType::float32:
      return f(static_cast<float*>(nullptr));
    case ElementType::float64:
      return f(static_cast<double*>(nullptr));
    case ElementType::long_double:
      return f(static_cast<long double*>(nullptr));
    case ElementType::complex_float32:
      return f(static_cast<std::complex<float>*>(nullptr));
    case ElementType::complex_float64:
      return f(static_cast<std::complex<double>*>(nullptr));
    case ElementType::complex_long_double:
      return f(static_cast<std::complex<long double>*>(nullptr));
    case ElementType::boolean:
      return f(static_cast<Boolean*>(nullptr));
    case ElementType::float_int:
      return f(static_cast<FloatInt*>(nullptr));
    case ElementType::double_int:
      return f(static_cast<DoubleInt*>(nullptr));
    case ElementType::long_int:
      return f(static_cast<LongInt*>(nullptr));
    case ElementType::two_int:
      return f(static_cast<TwoInt*>(nullptr));
    case ElementType::short_int:
      return f(static_cast<ShortInt*>(nullptr));
    case ElementType::long_double_int:
      return f(static_cast<LongDoubleInt*>(nullptr));
  }
  throw std::logic_error("no such type");
}

// ---- reading and writing elements ---------------------------------------------------------------

template <class T>
T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
constexpr std::size_t value_bytes =
    std::is_same_v<T, long double>&& std::numeric_limits<T>::digits == 64 ? 10 : sizeof(T);
template <class T>
void put(std::byte* to, const T& value) {
  if constexpr (PairType<T>) {
    put(to + offsetof(T, value), value.value);
    std::memcpy(to + offsetof(T, index), &value.index, sizeof value.index);
  } else if constexpr (is_complex_number<T>) {
    put(to, value.real());
    put(to + sizeof(T) / 2, value.imag());
  } else {
    std::memcpy(to, &value, value_bytes<T>);
  }
}

// ---- halves -------------------------------------------------------------------------------------

struct HalfFormat {
  int mantissa;      // stored bits
  int min_exponent;  // of a normal number
  int max_exponent;
};
HalfFormat format(ElementType type) {
  return type == ElementType::float16 ? HalfFormat{10, -14, 15} : HalfFormat{7, -126, 127};
}

// ---- operations ---------------------------------------------------------------------------------

template <class T>
T arithmetic(ReductionOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    return static_cast<T>(op == ReductionOp::sum ? x + y : x * y);
  } else if constexpr (is_complex_number<T>) {
    if (op == ReductionOp::sum) return {a.real() + b.real(), a.imag() + b.imag()};
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else {
    return op == ReductionOp::sum ? a + b : a * b;
  }
}

template <class T>
T bits_or_truth(ReductionOp op, T a, T b) {
  switch (op) {
    case ReductionOp::land:
      return static_cast<T>(a && b);
    case ReductionOp::lor:
      return static_cast<T>(a || b);
    case ReductionOp::lxor:
      return static_cast<T>(!a != !b);
    case ReductionOp::band:
      return static_cast<T>(a & b);
    case ReductionOp::bor:
      return static_cast<T>(a | b);
    case ReductionOp::bxor:
      return static_cast<T>(a ^ b);
    default:
      throw std::logic_error("not an operation on this type");
  }
}

template <class T>
T location(ReductionOp op, T a, T b) {
  const bool first = op == ReductionOp::maxloc ? a.value > b.value : a.value < b.value;
  T result = first ? a : b;
  if (a.value == b.value) result.index = std::min(a.index, b.index);
  return result;
}

template <class T>
T apply(ReductionOp op, T a, T b) {
  if constexpr (PairType<T>) {
    return location(op, a, b);
  } else if constexpr (std::is_same_v<T, Boolean>) {
    return {bits_or_truth(op, a.value, b.value)};
  } else {
    if (op == ReductionOp::sum || op == ReductionOp::prod) return arithmetic(op, a, b);
    if constexpr (!is_complex_number<T>) {
      if (op == ReductionOp::max) return a > b ? a : b;
      if (op == ReductionOp::min) return a < b ? a : b;
    }
    if constexpr (std::is_integral_v<T>) return bits_or_truth(op, a, b);
    throw std::logic_error("not an operation on this type");
  }
}

// Computes as float; a NaN gives a NaN.
template <class T>
float widen(ElementType type, T half) {
  if (is_nan(type, half.bits)) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(value_of(type, half.bits));
}

template <class T>
T reduce_half(ElementType type, ReductionOp op, const std::vector<const std::byte*>& inputs,
              std::size_t i) {
  float value = widen(type, get<T>(inputs[0] + i * sizeof(T)));
  for (std::size_t k = 1; k < inputs.size(); ++k)
    value = apply(op, value, widen(type, get<T>(inputs[k] + i * sizeof(T))));
  if (std::isnan(value))
    return {static_cast<std::uint16_t>(type == ElementType::float16 ? 0x7e00 : 0x7fc0)};
  return {nearest(type, value)};
}

// ---- values -------------------------------------------------------------------------------------

using Random = std::mt19937_64;

template <class T>
T random_floating(Values values, Random& random) {
  using Limits = std::numeric_limits<T>;
  if (values == Values::special && random() % 2 == 0) {
    const T some[] = {T(0),
                      -T(0),
                      Limits::infinity(),
                      -Limits::infinity(),
                      Limits::quiet_NaN(),
                      Limits::denorm_min(),
                      -3 * Limits::denorm_min(),
                      Limits::max(),
                      Limits::lowest(),
                      Limits::min()};
    return some[random() % std::size(some)];
  }
  const T mantissa = static_cast<T>(static_cast<std::int64_t>(random())) * T(0x1p-63);
  return std::ldexp(mantissa, static_cast<int>(random() % 9) - 4);
}

template <class T>
T random_element(ElementType type, Values values, Random& random) {
  if constexpr (PairType<T>) {
    using V = decltype(T::value);
    T pair{};
    if (random() % 2 == 0)  // ties
      pair.value = static_cast<V>(random() % 3);
    else if constexpr (std::is_floating_point_v<V>)
      pair.value = random_floating<V>(values, random);
    else
      pair.value = static_cast<V>(random());
    pair.index = static_cast<int>(random() % 5);
    return pair;
  } else if constexpr (is_half<T>) {
    if (values == Values::special) return {static_cast<std::uint16_t>(random())};
    return {nearest(type, random_floating<double>(values, random))};
  } else if constexpr (std::is_same_v<T, Boolean>) {
    return {static_cast<std::uint8_t>(random() % 2)};
  } else if constexpr (is_complex_number<T>) {
    using R = typename T::value_type;
    const R real = random_floating<R>(values, random);
    return {real, random_floating<R>(values, random)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return random_floating<T>(values, random);
  } else {
    return random() % 4 == 0 ? T(0) : static_cast<T>(random() >> 3);  // zeros, for logical ones
  }
}

template <class R>
bool same_real(const std::byte* a, const std::byte* b) {
  if (std::isnan(get<R>(a)) && std::isnan(get<R>(b))) return true;
  return std::memcmp(a, b, value_bytes<R>) == 0;
}

}  // namespace

double value_of(ElementType type, std::uint16_t half) {
  const HalfFormat f = format(type);
  const int exponent = (half & 0x7fff) >> f.mantissa;
  const int fraction = half & ((1 << f.mantissa) - 1);
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent > f.max_exponent - f.min_exponent + 1) return sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, f.min_exponent - f.mantissa);
  return sign *
         std::ldexp(fraction + (1 << f.mantissa), exponent - 1 + f.min_exponent - f.mantissa);
}

std::uint16_t nearest(ElementType type, double value) {
  const HalfFormat f = format(type);
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const int infinity = (f.max_exponent - f.min_exponent + 2) << f.mantissa;
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | infinity);
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), f.min_exponent);
  // The magnitude is in units of the last place: 0 to 2^(mantissa + 1), rounded to even.
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, f.mantissa - exponent)));
  const int bits = ((exponent - f.min_exponent) << f.mantissa) + units;
  return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}

bool is_nan(ElementType type, std::uint16_t half) {
  return (half & 0x7fff) > (type == ElementType::float16 ? 0x7c00 : 0x7f80);
}

void fill(ElementType type, Values values, std::uint64_t seed, std::byte* elements,
          std::size_t count) {
  Random random(seed);
  with_type(type, [&]<class T>(T*) {
    std::memset(elements, 0x5a, count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i)
      put(elements + i * sizeof(T), random_element<T>(type, values, random));
  });
}

void reference(ElementType type, ReductionOp op, const std::vector<const std::byte*>& inputs,
               std::size_t count, std::byte* output) {
  if (count == 0) return;  // null pointers are allowed for nothing
  if (op == ReductionOp::no_op || op == ReductionOp::replace) {  // gaps too
    const std::byte* operand = op == ReductionOp::no_op ? inputs.front() : inputs.back();
    std::memcpy(output, operand, count * size_of(type));
    return;
  }
  with_type(type, [&]<class T>(T*) {
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (is_half<T>) {
        put(output + i * sizeof(T), reduce_half<T>(type, op, inputs, i));
      } else {
        T value = get<T>(inputs[0] + i * sizeof(T));
        for (std::size_t k = 1; k < inputs.size(); ++k)
          value = apply(op, value, get<T>(inputs[k] + i * sizeof(T)));
        put(output + i * sizeof(T), value);
      }
    }
  });
}

bool same(ElementType type, const std::byte* a, const std::byte* b) {
  return with_type(type, [&]<class T>(T*) {
    if constexpr (is_half<T>) {
      const std::uint16_t x = get<T>(a).bits, y = get<T>(b).bits;
      return x == y || (is_nan(type, x) && is_nan(type, y));
    } else if constexpr (is_complex_number<T>) {
      using R = typename T::value_type;
      return same_real<R>(a, b) && same_real<R>(a + sizeof(R), b + sizeof(R));
    } else if constexpr (PairType<T>) {
      if constexpr (std::is_floating_point_v<decltype(T::value)>) {
        if (!same_real<decltype(T::value)>(a, b)) return false;
      } else if (get<T>(a).value != get<T>(b).value) {
        return false;
      }
      return get<T>(a).index == get<T>(b).index;
    } else if constexpr (std::is_floating_point_v<T>) {
      return same_real<T>(a, b);
    } else {
      return std::memcmp(a, b, sizeof(T)) == 0;
    }
  });
}

}  // namespace ropewalk::testing
