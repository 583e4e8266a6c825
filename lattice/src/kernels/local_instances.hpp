// The tables that the files local_*.cc define.
#pragma once

#include "kernels/local.hpp"

namespace ropewalk::lattice::kernels {

#define ROPEWALK_LATTICE_LOCAL_TABLES(isa)        \
  namespace local_##isa {                         \
    extern const LocalTable<float> float_table;   \
    extern const LocalTable<double> double_table; \
  }
ROPEWALK_LATTICE_LOCAL_TABLES(baseline)
ROPEWALK_LATTICE_LOCAL_TABLES(avx2)
ROPEWALK_LATTICE_LOCAL_TABLES(avx512)
#undef ROPEWALK_LATTICE_LOCAL_TABLES

// What such a file has compiled in `scope`.
#define ROPEWALK_LATTICE_LOCAL_TABLE(scope)                                                  \
  {                                                                                          \
    .lanes = scope::lanes, .clover = scope::clover, .subtract = scope::subtract,             \
    .advance = scope::advance, .add_scaled = scope::add_scaled, .multiply = scope::multiply, \
    .residual = scope::residual, .norm2 = scope::norm2, .dot = scope::dot,                   \
    .add_complex = scope::add_complex, .turn = scope::turn,                                  \
  }

namespace local_baseline {
extern const LocalTable<float> scalar_float_table;
extern const LocalTable<double> scalar_double_table;
}  // namespace local_baseline

}  // namespace ropewalk::lattice::kernels
