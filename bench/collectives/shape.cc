// Arithmetic of the collectives; see shape.hpp.
#include "collectives/shape.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ropewalk::bench {
namespace {

constexpr double most_iterations = 100000;

}  // namespace

const std::vector<std::string>& op_names() {
  static const std::vector<std::string> names = {
      "barrier", "allreduce",      "reduce",     "bcast",     "allgather", "alltoall", "gather",
      "scatter", "reduce_scatter", "allgatherv", "alltoallv", "gatherv",   "scatterv"};
  return names;
}

const std::string& name(Op op) { return op_names()[static_cast<std::size_t>(op)]; }

Op op_of(const std::string& name) {
  const auto& names = op_names();
  return static_cast<Op>(std::find(names.begin(), names.end(), name) - names.begin());
}

Op without_counts(Op op) {
  switch (op) {
    case Op::allgatherv:
      return Op::allgather;
    case Op::alltoallv:
      return Op::alltoall;
    case Op::gatherv:
      return Op::gather;
    case Op::scatterv:
      return Op::scatter;
    default:
      return op;
  }
}

std::size_t CallShape::part_begin(int part) const {
  return count() * static_cast<std::size_t>(part) / static_cast<std::size_t>(ranks);
}

std::size_t CallShape::send_count() const {
  switch (without_counts(op)) {
    case Op::barrier:
      return 0;
    case Op::bcast:
      return rank == 0 ? count() : 0;
    case Op::scatter:
      return rank == 0 ? count() * static_cast<std::size_t>(ranks) : 0;
    case Op::alltoall:
      return count() * static_cast<std::size_t>(ranks);
    default:
      return count();
  }
}

std::size_t CallShape::receive_count() const {
  switch (without_counts(op)) {
    case Op::barrier:
      return 0;
    case Op::reduce:
      return rank == 0 ? count() : 0;
    case Op::bcast:
      return rank == 0 ? 0 : count();
    case Op::gather:
      return rank == 0 ? count() * static_cast<std::size_t>(ranks) : 0;
    case Op::allgather:
    case Op::alltoall:
      return count() * static_cast<std::size_t>(ranks);
    case Op::reduce_scatter:
      return part_begin(rank + 1) - part_begin(rank);
    default:
      return count();
  }
}

TrafficBytes traffic(Op op, std::size_t bytes, int ranks) {
  const auto p = static_cast<std::size_t>(ranks);
  switch (without_counts(op)) {
    case Op::barrier:
      return {0, 0};
    case Op::allreduce:
      return {p * bytes, p * bytes};
    case Op::reduce:
    case Op::reduce_scatter:
      return {p * bytes, bytes};
    case Op::bcast:
      return {bytes, (p - 1) * bytes};
    case Op::allgather:
    case Op::alltoall:
      return {p * p * bytes, p * p * bytes};
    case Op::gather:
    case Op::scatter:
      return {p * bytes, p * bytes};
    default:
      break;
  }
  return {0, 0};
}

double link_bytes(Op op, std::size_t bytes, const std::vector<int>& ranks_on) {
  const auto v = static_cast<double>(bytes);
  const auto nodes = static_cast<double>(ranks_on.size());
  if (ranks_on.size() < 2) return 0;
  const double ranks = std::accumulate(ranks_on.begin(), ranks_on.end(), 0.0);
  const double most = *std::max_element(ranks_on.begin(), ranks_on.end());
  const double least = *std::min_element(ranks_on.begin(), ranks_on.end());
  switch (without_counts(op)) {
    case Op::allreduce:
      return 2 * (nodes - 1) / nodes * v;
    case Op::reduce:
    case Op::bcast:
      return v;
    case Op::allgather:  // in: all but one's own; out: one's own
      return std::max(ranks - least, most) * v;
    case Op::alltoall: {
      double busiest = 0;
      for (const int own : ranks_on) busiest = std::max(busiest, own * (ranks - own));
      return busiest * v;
    }
    case Op::gather:
    case Op::scatter:
      return (ranks - ranks_on.front()) * v;
    case Op::reduce_scatter:  // out: what one has for the ranks of others
      return std::max(1 - least / ranks, most / ranks) * v;
    default:
      return 0;
  }
}

int iterations_for(double call_us, double sample_us) {
  if (!(call_us > 0)) return static_cast<int>(most_iterations);
  return static_cast<int>(std::clamp(std::round(sample_us / call_us), 1.0, most_iterations));
}

}  // namespace ropewalk::bench
