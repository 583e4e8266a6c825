// Which copy of the kernels this machine runs, by lanes.
#include <string>
#include <vector>

#include "kernels/instances.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/settings.hpp"

namespace ropewalk::lattice::kernels {

namespace {

enum class Isa { baseline, avx2, avx512 };

Isa best() {
#if defined(__x86_64__)
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v4) return Isa::avx512;
  if (v3) return Isa::avx2;
#endif
  return Isa::baseline;
}

Isa choose() {
  const SettingValue wish = setting("ROPEWALK_ISA");
  if (!wish.error.empty()) throw Error(ErrorCode::argument, wish.error);
  constexpr const char* names[] = {"baseline", "avx2", "avx512"};
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (wish.value != names[static_cast<int>(isa)]) continue;
    if (isa <= best()) return isa;
    throw Error(ErrorCode::unsupported, "ROPEWALK_ISA: " + wish.value +
                                            " is not available on this machine; the best is " +
                                            names[static_cast<int>(best())]);
  }
  return best();
}

template <class Real>
const Table<Real>& entry(const Table<float>& single, const Table<double>& twice) {
  if constexpr (sizeof(Real) == sizeof(float))
    return static_cast<void>(twice), single;
  else
    return static_cast<void>(single), twice;
}

// Widest first.
template <class Real>
const std::vector<const Table<Real>*>& tables() {
  static const std::vector<const Table<Real>*> made = [] {
    std::vector<const Table<Real>*> out;
    const Isa isa = choose();
#if defined(__x86_64__)
    if (isa >= Isa::avx512) out.push_back(&entry<Real>(avx512::float_table, avx512::double_table));
    if (isa >= Isa::avx2) out.push_back(&entry<Real>(avx2::float_table, avx2::double_table));
#endif
    static_cast<void>(isa);
    out.push_back(&entry<Real>(baseline::float_table, baseline::double_table));
    out.push_back(&entry<Real>(scalar::float_table, scalar::double_table));
    return out;
  }();
  return made;
}

template <class Real>
std::span<const int> counts() {
  static const std::vector<int> made = [] {
    std::vector<int> out;
    for (const Table<Real>* table : tables<Real>()) out.push_back(table->lanes);
    return out;
  }();
  return made;
}

}  // namespace

std::span<const int> lane_counts(std::size_t bytes_per_real) {
  return bytes_per_real == sizeof(float) ? counts<float>() : counts<double>();
}

template <class Real>
const Table<Real>& table(int lanes) {
  for (const Table<Real>* made : tables<Real>())
    if (made->lanes == lanes) return *made;
  std::string known;
  for (const int count : counts<Real>())
    known += (known.empty() ? "" : ", ") + std::to_string(count);
  throw Error(ErrorCode::argument, "lanes: found " + std::to_string(lanes) + ", expected one of " +
                                       known + "; pass 0 for the best that fits");
}

template const Table<float>& table<float>(int);
template const Table<double>& table<double>(int);

}  // namespace ropewalk::lattice::kernels
