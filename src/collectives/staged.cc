// This file has the reductions and broadcasts of buffers that others cannot map. They go through
// staging areas, chunk by chunk.
//
// Each area has two halves. Chunk c is written to half c % 2; it is written again for chunk c + 2,
// when every rank has finished a phase that it finishes only after it has read chunk c.
#include <algorithm>

#include "collectives/algorithms.hpp"

namespace ropewalk::collectives {
namespace {

// Up to so many ranks each combines whole chunks for itself: one exchange a chunk instead of two,
// for p reads of each input instead of one.
constexpr int few_ranks = 4;

struct Staging {
  Engine& engine;
  const std::vector<Shown>& shown;
  const Operation& operation;
  std::size_t chunk_bytes;

  // A rank's elements must be copied when they are private, or will be overwritten while others
  // read.
  bool copies(int rank) const {
    return !shown[rank].send.is_visible() || shown[rank].send == shown[rank].receive;
  }
  std::byte* input(int rank, std::size_t chunk, std::size_t offset) const {
    if (!copies(rank)) return engine.resolve(rank, shown[rank].send + offset, chunk_bytes);
    return engine.team().staging().of(rank) + chunk % 2 * chunk_bytes;
  }
  std::byte* result(int rank, std::size_t chunk) const {
    return engine.team().staging().of(rank) + (2 + chunk % 2) * chunk_bytes;
  }
  void show_chunk(const void* send, std::size_t chunk, std::size_t offset,
                  std::size_t bytes) const {
    if (copies(engine.rank())) {
      kernels::copy(input(engine.rank(), chunk, offset),
                    static_cast<const std::byte*>(send) + offset, bytes, kernels::Stores::temporal);
    }
    engine.duties().synchronize();
    for (int rank = 0; rank < engine.size(); ++rank) {
      engine.inputs[rank] = input(rank, chunk, offset);
    }
  }
};

// Each rank that wants the result combines the chunk itself.
void combine_alone(const Staging& staging, void* receive, std::size_t offset, std::size_t count) {
  void* output = static_cast<std::byte*>(receive) + offset;
  staging.operation.combine(std::span(&output, 1), staging.engine.inputs, count,
                            kernels::Stores::temporal);
}

// Each rank combines its slice of the chunk into its area; who wants the result collects the
// slices.
void combine_together(const Staging& staging, void* receive, std::size_t chunk, std::size_t offset,
                      std::size_t count, bool wants) {
  Engine& engine = staging.engine;
  const std::size_t element = staging.operation.element_bytes;
  const Range own = slice(count, engine.rank(), engine.size(), 1);
  for (const void*& input : engine.inputs) {
    input = static_cast<const std::byte*>(input) + own.begin * element;
  }
  void* output = staging.result(engine.rank(), chunk) + own.begin * element;
  staging.operation.combine(std::span(&output, 1), engine.inputs, own.length(),
                            kernels::Stores::temporal);
  engine.duties().synchronize();
  for (int rank = 0; wants && rank < engine.size(); ++rank) {
    const Range part = slice(count, rank, engine.size(), 1);
    kernels::copy(static_cast<std::byte*>(receive) + offset + part.begin * element,
                  staging.result(rank, chunk) + part.begin * element, part.length() * element,
                  kernels::Stores::temporal);
  }
}

}  // namespace

void staged_reduce(Engine& engine, const std::vector<Shown>& shown, const void* send, void* receive,
                   std::size_t count, const Operation& operation, int root) {
  const std::size_t element = operation.element_bytes;
  const std::size_t step = std::max<std::size_t>(1, engine.limits().chunk_bytes / element);
  const Staging staging{engine, shown, operation, step * element};
  // Every rank has arrived, so every rank has left the last call that read this area.
  engine.duties().reserve_staging(4 * staging.chunk_bytes);
  const bool wants = root < 0 || root == engine.rank();
  std::size_t chunk = 0;
  for (std::size_t begin = 0; begin < count; begin += step, ++chunk) {
    const std::size_t length = std::min(step, count - begin);
    staging.show_chunk(send, chunk, begin * element, length * element);
    if (engine.size() > few_ranks) {
      combine_together(staging, receive, chunk, begin * element, length, wants);
    } else if (wants) {
      combine_alone(staging, receive, begin * element, length);
    }
  }
  engine.leave();  // mapped inputs were read where they are
}

void staged_broadcast(Engine& engine, void* data, std::size_t bytes, int root) {
  node::Team& team = engine.team();
  const std::size_t step = engine.limits().chunk_bytes;
  if (engine.rank() == root) engine.duties().reserve_staging(2 * step);
  engine.duties().owe_nothing();  // a failed root has shown its phase, and nothing else fails
  const std::uint64_t before = team.phases().finished();
  std::uint64_t chunk = 0;
  for (std::size_t begin = 0; begin < bytes; begin += step, ++chunk) {
    const std::size_t length = std::min(step, bytes - begin);
    std::byte* part = static_cast<std::byte*>(data) + begin;
    if (engine.rank() == root) {
      // The others begin chunk c - 1 when they have read chunk c - 2, the last one in this half.
      if (chunk >= 2) team.phases().wait_for_all(before + chunk);
      kernels::copy(team.staging().of(root) + chunk % 2 * step, part, length,
                    kernels::Stores::temporal);
      team.phases().finish();
    } else {
      const std::uint64_t shown = team.phases().finish();
      team.phases().wait_for(root, shown);
      engine.duties().check_complete(shown);
      kernels::copy(part, team.staging().of(root) + chunk % 2 * step, length,
                    kernels::Stores::temporal);
    }
  }
}

}  // namespace ropewalk::collectives
