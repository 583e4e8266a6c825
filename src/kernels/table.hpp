// The copies of the kernels, one for each instruction set, give this to the dispatcher. The header
// is included by files that are compiled for one instruction set: keep it free of inline functions
// and std:: templates, of which the linker might keep the copy that other machines cannot run.
#pragma once

#include "kernels/kernels.hpp"

namespace ropewalk::kernels {

using CopyFunction = void (*)(void* const* outputs, int output_count, const void* from,
                              std::size_t bytes, Stores stores);

struct Table {
  ReduceFunction reduce[element_type_count][reduction_op_count];
  AverageFunction average[element_type_count];
  CopyFunction copy;
};

namespace baseline {
extern const Table table;
}
namespace avx2 {
extern const Table table;
}
namespace avx512 {
extern const Table table;
}

}  // namespace ropewalk::kernels
