// The reductions of a Collectives: arguments are checked, and in place resolved, here and
// nowhere else; then its backend makes the call.
#include "collectives/reductions.hpp"

#include <vector>

#include "collectives/checks.hpp"
#include "collectives/datatypes.hpp"

namespace ropewalk {

namespace collectives {

namespace {

// Elements without data are none: slices are counted by their size.
std::size_t with_data(const Operation& operation, std::size_t count) {
  return operation.element_bytes == 0 ? 0 : count;
}

void check_elements(Collectives::State& state, const Operation& operation, const void* buffer,
                    std::size_t count, const char* argument) {
  const std::size_t bytes = bytes_of(state, count, operation.element_bytes);
  if (leaves_gaps_to_mpi(state, operation)) return;  // null may be MPI_BOTTOM, a proper buffer
  check_buffer(state, buffer, bytes, argument);
}

// root -1: every rank gets the result.
void reduce_to(Collectives::State& state, const void* send, void* receive, std::size_t count,
               const Operation& operation, int root) {
  count = with_data(operation, count);
  const bool has_output = root < 0 || root == state.rank;
  if (is_in_place(send)) {
    if (!has_output) {
      refuse(state, "send: in place is for the root alone; pass this rank's elements");
    }
    send = receive;
  }
  check_elements(state, operation, send, count, "send");
  if (has_output) check_elements(state, operation, receive, count, "receive");
  state.backend->reduce(send, receive, count, operation, root);
}

}  // namespace

void allreduce(Collectives::State& state, const void* send, void* receive, std::size_t count,
               const Operation& operation) {
  reduce_to(state, send, receive, count, operation, -1);
}

void reduce(Collectives::State& state, const void* send, void* receive, std::size_t count,
            const Operation& operation, int root) {
  check_root(state, root);
  reduce_to(state, send, receive, count, operation, root);
}

void scan(Collectives::State& state, const void* send, void* receive, std::size_t count,
          const Operation& operation, bool exclusive) {
  count = with_data(operation, count);
  if (is_in_place(send)) send = receive;
  check_elements(state, operation, send, count, "send");
  if (!exclusive || state.rank > 0) check_elements(state, operation, receive, count, "receive");
  state.backend->scan(send, receive, count, operation, exclusive);
}

void reduce_scatter(Collectives::State& state, const void* send, void* receive,
                    const std::size_t* counts, const Operation& operation) {
  check_counts(state, counts, "counts");
  std::vector<std::size_t> none;
  if (operation.element_bytes == 0) {
    none.resize(static_cast<std::size_t>(state.size));
    counts = none.data();
  }
  std::size_t total = 0;
  for (int peer = 0; peer < state.size; ++peer) {
    total += counts[peer];
    if (total < counts[peer]) {
      refuse(state, "counts: their sum is more than memory can hold; pass smaller counts");
    }
  }
  if (is_in_place(send)) send = receive;
  check_elements(state, operation, send, total, "send");
  check_elements(state, operation, receive, counts[state.rank], "receive");
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
    collectives::allreduce(*state_, send, receive, count, checked_operation(*state_, type, op));
  });
}

void Collectives::reduce(const void* send, void* receive, std::size_t count, ElementType type,
                         ReductionOp op, int root) {
  state_->run([&] {
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
