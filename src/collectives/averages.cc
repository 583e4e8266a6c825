// This file implements averages.hpp. The kernels divide a sum before they round it; what MPI has
// summed is divided here.
#include "ropewalk/averages.hpp"

#include <string>

#include "collectives/checks.hpp"
#include "collectives/reductions.hpp"
#include "kernels/kernels.hpp"

namespace ropewalk {
namespace {

using collectives::Operation;

Operation averaging(Collectives::State& state, ElementType type) {
  Operation made = collectives::checked_operation(state, type, ReductionOp::sum);
  made.average = kernels::find_average(type);
  made.divisor = state.size;
  if (made.average == nullptr) {
    collectives::refuse(state, std::string("op: average is not defined for elements of type ") +
                                   name(type) + "; sum them and divide, or pass floating point");
  }
  return made;
}

void divide(const Operation& operation, void* data, std::size_t count) {
  if (count == 0) return;
  const void* sum = data;
  operation.average(&data, 1, &sum, 1, count, operation.divisor, kernels::Stores::temporal);
}

}  // namespace

void allreduce_average(Collectives& on, const void* send, void* receive, std::size_t count,
                       ElementType type) {
  Collectives::State& state = on.state();
  state.run([&] {
    const Operation operation = averaging(state, type);
    collectives::allreduce(state, send, receive, count,
                           on.direct() ? operation : operation.partial());
    if (!on.direct()) divide(operation, receive, count);
  });
}

void reduce_average(Collectives& on, const void* send, void* receive, std::size_t count,
                    ElementType type, int root) {
  Collectives::State& state = on.state();
  state.run([&] {
    const Operation operation = averaging(state, type);
    collectives::reduce(state, send, receive, count, on.direct() ? operation : operation.partial(),
                        root);
    if (!on.direct() && state.rank == root) divide(operation, receive, count);
  });
}

void reduce_scatter_average(Collectives& on, const void* send, void* receive,
                            const std::size_t* counts, ElementType type) {
  Collectives::State& state = on.state();
  state.run([&] {
    const Operation operation = averaging(state, type);
    const bool at_once = on.nodes() == 1;
    collectives::reduce_scatter(state, send, receive, counts,
                                at_once ? operation : operation.partial());
    if (!at_once) divide(operation, receive, counts[state.rank]);
  });
}

}  // namespace ropewalk
