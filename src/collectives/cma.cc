// This file has the reductions and broadcasts where some buffers are private and the kernel copies
// between processes.
//
// As with mapped buffers, rank i combines slice i of all inputs: it reads the others' private parts
// chunk by chunk into its cache, and writes the results into their outputs. No rank's memory is
// touched by two ranks at once, and nothing is copied that staging would copy twice.
#include <algorithm>

#include "collectives/algorithms.hpp"

namespace ropewalk::collectives {
namespace {

constexpr std::size_t page_bytes = 4096;  // the kernel's work is by pages

// One rank's part of a reduction is its slice, in chunks.
struct Slice {
  Engine& engine;
  const std::vector<Shown>& shown;
  const Operation& operation;
  const std::byte* send;
  std::byte* receive;  // null where this rank gets no result
  int root;
  std::byte* area;  // a chunk a rank, for inputs read by CMA and for a result on its way
  std::size_t chunk_bytes;

  bool wanted(int rank) const { return root < 0 || root == rank; }

  // Makes room for a chunk of every rank; returns false where there is no memory.
  bool make_area() {
    area = engine.scratch().try_take(chunk_bytes * engine.inputs.size());
    return area != nullptr;
  }

  // Points the inputs of the first `ranks` ranks at their elements, or at copies.
  bool fetch(int ranks, std::size_t offset, std::size_t bytes) const {
    bool complete = true;
    for (int peer = 0; peer < ranks; ++peer) {
      const Shown& from = shown[peer];
      if (peer == engine.rank()) {
        engine.inputs[peer] = send + offset;
      } else if (from.send.is_visible()) {
        engine.inputs[peer] = engine.resolve(peer, from.send + offset, bytes);
      } else {
        std::byte* chunk = area + static_cast<std::size_t>(peer) * chunk_bytes;
        complete &=
            engine.copies().read(chunk, peer, from, offset, bytes, kernels::Stores::temporal);
        engine.inputs[peer] = chunk;
      }
    }
    return complete;
  }

  bool work(std::size_t offset, std::size_t bytes) const {
    if (!fetch(engine.size(), offset, bytes)) return false;
    bool complete = true;
    // What is written by CMA is read from the first output: this rank's own, or its chunk.
    std::byte* result = receive != nullptr
                            ? receive + offset
                            : area + static_cast<std::size_t>(engine.rank()) * chunk_bytes;
    const bool keeps = receive != nullptr || !shown[root].receive.is_visible();
    std::size_t outputs = 0;
    if (keeps) engine.outputs[outputs++] = result;
    for (int peer = 0; peer < engine.size(); ++peer) {
      if (peer == engine.rank() || !wanted(peer)) continue;
      if (!shown[peer].receive.is_visible()) continue;
      engine.outputs[outputs++] = engine.resolve(peer, shown[peer].receive + offset, bytes);
    }
    operation.combine(std::span(engine.outputs).first(outputs), engine.inputs,
                      bytes / operation.element_bytes, kernels::Stores::temporal);
    for (int peer = 0; peer < engine.size(); ++peer) {
      if (peer == engine.rank() || !wanted(peer)) continue;
      if (shown[peer].receive.is_visible()) continue;
      complete &= engine.memory().write(peer, shown[peer].receive + offset, result, bytes,
                                        kernels::Stores::temporal);
    }
    return complete;
  }
};

}  // namespace

bool reaches_all(const std::vector<Shown>& shown, int root) {
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    const Shown& one = shown[rank];
    const bool wants = root < 0 || static_cast<std::size_t>(root) == rank;
    if (one.send.is_none() || (wants && one.receive.is_none())) return false;
  }
  return true;
}

void cma_reduce(Engine& engine, const std::vector<Shown>& shown, const void* send, void* receive,
                std::size_t count, const Operation& operation, int root) {
  const std::size_t element = operation.element_bytes;
  const std::size_t step = std::max<std::size_t>(1, engine.limits().chunk_bytes / element);
  const bool wants = root < 0 || root == engine.rank();
  Slice part_of_rank{engine,
                     shown,
                     operation,
                     static_cast<const std::byte*>(send),
                     wants ? static_cast<std::byte*>(receive) : nullptr,
                     root,
                     nullptr,
                     step * element};
  const Range part =
      slice(count, engine.rank(), engine.size(), std::max<std::size_t>(1, page_bytes / element));
  bool complete = part_of_rank.make_area();
  for (std::size_t begin = part.begin; complete && begin < part.end; begin += step) {
    const std::size_t length = std::min(step, part.end - begin);
    complete &= part_of_rank.work(begin * element, length * element);
  }
  engine.leave(complete);
}

bool read_by_cma(const std::vector<Shown>& shown) {
  return std::ranges::any_of(shown, [](const Shown& rank) { return rank.send.is_by_kernel(); });
}

void cma_combine(Engine& engine, const std::vector<Shown>& shown, const void* send, int ranks,
                 std::size_t first, void* receive, std::size_t count, const Operation& operation) {
  const std::size_t element = operation.element_bytes;
  const std::size_t step = std::max<std::size_t>(1, engine.limits().chunk_bytes / element);
  Slice all{engine,  shown, operation, static_cast<const std::byte*>(send),
            nullptr, -1,    nullptr,   step * element};
  bool complete = all.make_area();
  for (std::size_t begin = 0; complete && begin < count; begin += step) {
    const std::size_t length = std::min(step, count - begin);
    complete = all.fetch(ranks, (first + begin) * element, length * element);
    if (!complete) break;
    void* output = static_cast<std::byte*>(receive) + begin * element;
    operation.combine(std::span(&output, 1),
                      std::span(engine.inputs).first(static_cast<std::size_t>(ranks)), length,
                      kernels::Stores::temporal);
  }
  engine.leave(complete);
}

// Receivers read the beginning of a private root's buffer, all at once; the root, which has nothing
// to read, writes the end: with p ranks a p-th of what each gets.
void cma_broadcast(Engine& engine, const std::vector<Shown>& shown, void* data, std::size_t bytes,
                   int root) {
  const std::size_t share = bytes / static_cast<std::size_t>(engine.size());
  const std::size_t cut = (bytes - share) / page_bytes * page_bytes;
  auto* buffer = static_cast<std::byte*>(data);
  const kernels::Stores stores = engine.stores(bytes);
  bool complete = true;
  if (engine.rank() != root) {
    complete = engine.copies().read(buffer, root, shown[root], 0, cut, stores);
  } else {
    for (int step = 1; step < engine.size(); ++step) {
      const int peer = (root + step) % engine.size();
      complete &=
          engine.memory().write(peer, shown[peer].receive + cut, buffer + cut, bytes - cut, stores);
    }
  }
  engine.leave(complete);
}

}  // namespace ropewalk::collectives
