// The tables that the files of this folder define, one an instruction set and precision.
#pragma once

#include "kernels/kernels.hpp"

namespace ropewalk::lattice::kernels {

#define ROPEWALK_LATTICE_TABLES(isa)               \
  namespace isa {                                  \
  extern const OperatorTable<float> float_table;   \
  extern const OperatorTable<double> double_table; \
  }
ROPEWALK_LATTICE_TABLES(scalar)
ROPEWALK_LATTICE_TABLES(baseline)
ROPEWALK_LATTICE_TABLES(avx2)
ROPEWALK_LATTICE_TABLES(avx512)
#undef ROPEWALK_LATTICE_TABLES

}  // namespace ropewalk::lattice::kernels
