// The paper's formula; see model.hpp.
#include "collectives/model.hpp"

#include <algorithm>
#include <cmath>

namespace ropewalk::bench {

ByteCost at(const Model& model, std::size_t bytes) {
  const auto& costs = model.a_byte;
  if (costs.empty()) return {bytes, 0, 0};
  const auto above = std::find_if(costs.begin(), costs.end(),
                                  [&](const ByteCost& cost) { return cost.bytes >= bytes; });
  if (above == costs.end()) return {bytes, costs.back().copy_us, costs.back().reduce_us};
  if (above == costs.begin()) return {bytes, above->copy_us, above->reduce_us};
  const ByteCost& below = *(above - 1);
  const double share =
      std::log(static_cast<double>(bytes) / static_cast<double>(below.bytes)) /
      std::log(static_cast<double>(above->bytes) / static_cast<double>(below.bytes));
  return {bytes, std::lerp(below.copy_us, above->copy_us, share),
          std::lerp(below.reduce_us, above->reduce_us, share)};
}

double predicted_us(const Model& model, Op op, std::size_t bytes, int ranks) {
  const double others = ranks - 1;
  const double exchange = others * model.flag_us;  // C
  const ByteCost cost = at(model, bytes);
  const auto v = static_cast<double>(bytes);
  const double part = v / ranks;
  switch (without_counts(op)) {
    case Op::barrier:
      return exchange;
    case Op::allreduce:
      return exchange + others * part * cost.reduce_us +
             others * (model.flag_us + part * cost.copy_us);
    case Op::reduce:
    case Op::reduce_scatter:
      return exchange + others * part * cost.reduce_us + others * model.flag_us;
    case Op::bcast:
      return exchange + others * (model.flag_us + part * cost.copy_us);
    case Op::allgather:
    case Op::alltoall:
      return exchange + ranks * v * cost.copy_us + others * model.flag_us;
    case Op::gather:
    case Op::scatter:
      return exchange + v * cost.copy_us + others * model.flag_us;
    default:
      break;
  }
  return 0;
}

}  // namespace ropewalk::bench
