// Which copy of the kernels this machine runs, by lanes.
#include <string>
#include <vector>

#include "kernels/instances.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/instruction_set.hpp"

namespace ropewalk::lattice::kernels {

namespace {

template <class Real>
const OperatorTable<Real>& entry(const OperatorTable<float>& single,
                                 const OperatorTable<double>& twice) {
  if constexpr (sizeof(Real) == sizeof(float)) {
    return static_cast<void>(twice), single;
  } else {
    return static_cast<void>(single), twice;
  }
}

// The widest set comes first.
template <class Real>
const std::vector<const OperatorTable<Real>*>& tables() {
  static const std::vector<const OperatorTable<Real>*> made = [] {
    std::vector<const OperatorTable<Real>*> out;
#if defined(__x86_64__)
    const InstructionSet set = instruction_set();
    if (set >= InstructionSet::avx512) {
      out.push_back(&entry<Real>(avx512::float_table, avx512::double_table));
    }
    if (set >= InstructionSet::avx2) {
      out.push_back(&entry<Real>(avx2::float_table, avx2::double_table));
    }
#endif
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
    for (const OperatorTable<Real>* table : tables<Real>()) out.push_back(table->lanes);
    return out;
  }();
  return made;
}

}  // namespace

std::span<const int> lane_counts(std::size_t bytes_per_real) {
  return bytes_per_real == sizeof(float) ? counts<float>() : counts<double>();
}

template <class Real>
const OperatorTable<Real>& table(int lanes) {
  for (const OperatorTable<Real>* made : tables<Real>()) {
    if (made->lanes == lanes) return *made;
  }
  std::string known;
  for (const int count : counts<Real>()) {
    known += (known.empty() ? "" : ", ") + std::to_string(count);
  }
  throw Error(ErrorCode::argument, "lanes: found " + std::to_string(lanes) + ", expected one of " +
                                       known + "; pass 0 for the best that fits");
}

template const OperatorTable<float>& table<float>(int);
template const OperatorTable<double>& table<double>(int);

}  // namespace ropewalk::lattice::kernels
