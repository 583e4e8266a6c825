// What the report has beyond Grid's: medians, plain MPI beside the exchange, and each operator's
// arithmetic intensity and share of the roofline measured in the same run.
#pragma once

#include <string>
#include <vector>

#include "itt/tables.hpp"

namespace ropewalk::bench {

// Peak, and bandwidth by the level of the memory that data of a size lie in.
std::string roofline_table(const IttContext& context, double peak_gflops,
                           const std::vector<Level>& levels);
// Medians against MPI's nonblocking messages of one thread on the same buffers.
std::string stencil_details(const std::vector<StencilResult>& results);
// Whole steps: faces gathered, exchanged and read.
std::string step_table(const std::vector<StencilResult>& results);
// Returns every case of every operator.
std::string operator_table(const IttContext& context, const std::string& title,
                           const std::vector<OperatorResult>& results);

}  // namespace ropewalk::bench
