// Filling and checking; see data.hpp.
#include "collectives/data.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ropewalk::bench {
namespace {

// Sent by `from` at `index`, for the element `i` that `shape.rank` receives.
struct Source {
  int from;
  std::size_t index;
};

Source source(const CallShape& shape, std::size_t i) {
  const std::size_t n = shape.count();
  const auto mine = static_cast<std::size_t>(shape.rank);
  switch (without_counts(shape.op)) {
    case Op::allgather:
    case Op::gather:
      return {static_cast<int>(i / n), i % n};
    case Op::alltoall:
      return {static_cast<int>(i / n), mine * n + i % n};
    case Op::scatter:
      return {0, mine * n + i};
    default:
      return {0, i};
  }
}

bool sums(Op op) { return op == Op::allreduce || op == Op::reduce || op == Op::reduce_scatter; }

template <class Value>
float expected(const CallShape& shape, std::size_t i, Value value_of) {
  if (!sums(shape.op)) {
    const Source from = source(shape, i);
    return value_of(from.from, from.index);
  }
  if (shape.op == Op::reduce_scatter) i += shape.part_begin(shape.rank);
  float sum = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) sum += value_of(rank, i);
  return sum;
}

template <class Value>
std::string compare(const CallShape& shape, const float* receive, Value value_of) {
  for (std::size_t i = 0; i < shape.receive_count(); ++i) {
    const float right = expected(shape, i, value_of);
    if (receive[i] == right) continue;
    return fmt::format("{} of {} bytes: element {} on rank {} is {}, expected {}", name(shape.op),
                       shape.bytes, i, shape.rank, receive[i], right);
  }
  return "";
}

}  // namespace

float value(int rank, std::size_t index, unsigned serial) {
  const std::size_t mixed =
      index * 3 + static_cast<std::size_t>(rank) * 131 + std::size_t{serial} * 17;
  return static_cast<float>(mixed & 1023);
}

void fill(const CallShape& shape, float* send, unsigned serial) {
  for (std::size_t i = 0; i < shape.send_count(); ++i) send[i] = value(shape.rank, i, serial);
}

float flat_value(int rank, unsigned serial) {
  return static_cast<float>((static_cast<unsigned>(rank) * 131 + serial) & 1023);
}

void rewrite(const CallShape& shape, float* send, unsigned serial) {
  std::fill_n(send, shape.send_count(), flat_value(shape.rank, serial));
}

std::string check(const CallShape& shape, const float* receive, unsigned serial, Filled filled) {
  if (filled == Filled::flat) {
    return compare(shape, receive, [&](int rank, std::size_t) { return flat_value(rank, serial); });
  }
  return compare(shape, receive,
                 [&](int rank, std::size_t index) { return value(rank, index, serial); });
}

void spoil(const CallShape& shape, float* receive) {
  std::fill_n(receive, shape.receive_count(), -1.0F);
}

}  // namespace ropewalk::bench
