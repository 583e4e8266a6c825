#include "kernels/kernels.hpp"
#include "kernels/local_instances.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::lattice::kernels {

namespace {

template <class Real>
struct Tables;

#if defined(__x86_64__)
template <>
struct Tables<float> {
  static constexpr const LocalTable<float>* all[] = {
      &local_avx512::float_table, &local_avx2::float_table, &local_baseline::float_table,
      &local_baseline::scalar_float_table};
};
template <>
struct Tables<double> {
  static constexpr const LocalTable<double>* all[] = {
      &local_avx512::double_table, &local_avx2::double_table, &local_baseline::double_table,
      &local_baseline::scalar_double_table};
};
#else
template <>
struct Tables<float> {
  static constexpr const LocalTable<float>* all[] = {&local_baseline::float_table,
                                                     &local_baseline::scalar_float_table};
};
template <>
struct Tables<double> {
  static constexpr const LocalTable<double>* all[] = {&local_baseline::double_table,
                                                      &local_baseline::scalar_double_table};
};
#endif

}  // namespace

// The number of lanes tells the instruction set, and table() that this machine has it.
template <class Real>
const LocalTable<Real>& local_table(int lanes) {
  static_cast<void>(table<Real>(lanes));
  for (const LocalTable<Real>* made : Tables<Real>::all) {
    if (made->lanes == lanes) return *made;
  }
  throw Error(ErrorCode::internal,
              "lanes: no site-local kernels for " + std::to_string(lanes) + "; report this");
}

template const LocalTable<float>& local_table<float>(int);
template const LocalTable<double>& local_table<double>(int);

}  // namespace ropewalk::lattice::kernels
