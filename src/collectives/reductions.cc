// The reductions of a Collectives: arguments are checked, and in place resolved, here and
// nowhere else; then its backend makes the call.
#include "collectives/reductions.hpp"

#include <vector>

#include "collectives/checks.hpp"
#include "collectives/datatypes.hpp"

namespace ropewalk {

namespace collectives {

void reduce(Collectives::State& state, const void* send, void* receive, std::size_t count,
            const Operation& operation, int root) {
  const std::size_t bytes = bytes_of(state, count, operation.element_bytes);
  const bool has_output = root < 0 || root == state.rank;
  if (is_in_place(send)) {
    if (!has_output) {
      refuse(state, "send: in place is for the root alone; pass this rank's elements");
    }
    send = receive;
  }
  check_buffer(state, send, bytes, "send");
  if (has_output) check_buffer(state, receive, bytes, "receive");
  state.backend->reduce(send, receive, count, operation, root);
}

void scan(Collectives::State& state, const void* send, void* receive, std::size_t count,
          const Operation& operation, bool exclusive) {
  const std::size_t bytes = bytes_of(state, count, operation.element_bytes);
  if (is_in_place(send)) send = receive;
  check_buffer(state, send, bytes, "send");
  if (!exclusive || state.rank > 0) check_buffer(state, receive, bytes, "receive");
  state.backend->scan(send, receive, count, operation, exclusive);
}

void reduce_scatter(Collectives::State& state, const void* send, void* receive,
                    const std::size_t* counts, const Operation& operation) {
  check_counts(state, counts, "counts");
  std::size_t total = 0;
  for (int peer = 0; peer < state.size; ++peer) {
    total += counts[peer];
    if (total < counts[peer]) refuse(state, "counts: their sum overflows");
  }
  const std::size_t bytes = bytes_of(state, total, operation.element_bytes);
  if (is_in_place(send)) send = receive;
  check_buffer(state, send, bytes, "send");
  check_buffer(state, receive, counts[state.rank] * operation.element_bytes, "receive");
  state.backend->reduce_scatter(send, receive, counts, operation);
}

const Operation& checked_operation(Collectives::State& state, ElementType type, ReductionOp op) {
  try {
    return operation(type, op);
  } catch (const Error&) {
    // The others must not wait for this rank's call.
    state.backend->refuse("");
    throw;
  }
}

}  // namespace collectives

using collectives::checked_operation;

void Collectives::allreduce(const void* send, void* receive, std::size_t count, ElementType type,
                            ReductionOp op) {
  state_->run([&] {
    collectives::reduce(*state_, send, receive, count, checked_operation(*state_, type, op), -1);
  });
}

void Collectives::reduce(const void* send, void* receive, std::size_t count, ElementType type,
                         ReductionOp op, int root) {
  state_->run([&] {
    collectives::check_root(*state_, root);
    collectives::reduce(*state_, send, receive, count, checked_operation(*state_, type, op), root);
  });
}

void Collectives::scan(const void* send, void* receive, std::size_t count, ElementType type,
                       ReductionOp op) {
  state_->run([&] {
    collectives::scan(*state_, send, receive, count, checked_operation(*state_, type, op), false);
  });
}

void Collectives::exscan(const void* send, void* receive, std::size_t count, ElementType type,
                         ReductionOp op) {
  state_->run([&] {
    collectives::scan(*state_, send, receive, count, checked_operation(*state_, type, op), true);
  });
}

void Collectives::reduce_scatter(const void* send, void* receive, const std::size_t* counts,
                                 ElementType type, ReductionOp op) {
  state_->run([&] {
    collectives::reduce_scatter(*state_, send, receive, counts,
                                checked_operation(*state_, type, op));
  });
}

void Collectives::reduce_scatter_block(const void* send, void* receive, std::size_t count,
                                       ElementType type, ReductionOp op) {
  state_->run([&] {
    const std::vector<std::size_t> counts(state_->size, count);
    reduce_scatter(send, receive, counts.data(), type, op);
  });
}

}  // namespace ropewalk
