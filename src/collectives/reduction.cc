// allreduce, reduce, scan, exscan and reduce_scatter.
//
// Up to one_shot_bytes every rank puts its elements into its slot and combines all slots itself:
// one exchange of flags. Above it, with all buffers mapped, rank i combines slice i of all inputs
// and pushes the result into all outputs: each input is read once and each output written once, 2ps
// bytes in all, the lower bound (Hashmi et al. 2018 pull, and move 3ps).
#include <algorithm>
#include <cstring>

#include "collectives/algorithms.hpp"
#include "os/hash.hpp"

namespace ropewalk::collectives {
namespace {

// Waits for every slot of the call; inputs then point at the payloads.
void gather_payloads(Engine& engine, const node::Slot& own, std::size_t bytes) {
  for (int peer = 0; peer < engine.size(); ++peer) {
    const node::Slot& slot = peer == engine.rank() ? own : engine.arrivals().of(peer, own);
    engine.inputs[peer] = slot.place(bytes);
  }
  engine.team().slots().all_arrived();
  engine.arrivals().check(own);
}

void one_shot(Engine& engine, node::Slot& own, const void* send, void* receive, std::size_t count,
              const Operation& operation, int root) {
  engine.path = Path::inlined;
  const std::size_t bytes = count * operation.element_bytes;
  std::memcpy(own.place(bytes), send, bytes);
  engine.team().slots().arrive(bytes);
  if (root >= 0 && root != engine.rank()) return;
  gather_payloads(engine, own, bytes);
  operation.combine(std::span(&receive, 1), engine.inputs, count, kernels::Stores::temporal);
}

bool all_sends_mapped(const std::vector<Shown>& shown) {
  return std::ranges::all_of(shown, [](const Shown& rank) { return rank.send.is_visible(); });
}

bool outputs_mapped(const std::vector<Shown>& shown, int root) {
  if (root >= 0) return shown[root].receive.is_visible();
  return std::ranges::all_of(shown, [](const Shown& rank) { return rank.receive.is_visible(); });
}

void push_slices(Engine& engine, const std::vector<Shown>& shown, std::size_t count,
                 const Operation& operation, int root) {
  const Range part = slice(count, engine.rank(), engine.size(), operation.slice_grain());
  const std::size_t bytes = count * operation.element_bytes;
  const std::size_t offset = part.begin * operation.element_bytes;
  std::size_t outputs = 0;
  for (int peer = 0; peer < engine.size(); ++peer) {
    engine.inputs[peer] = engine.resolve(peer, shown[peer].send, bytes) + offset;
    if (root < 0 || root == peer) {
      engine.outputs[outputs++] = engine.resolve(peer, shown[peer].receive, bytes) + offset;
    }
  }
  operation.combine(std::span(engine.outputs).first(outputs), engine.inputs, part.length(),
                    engine.stores(bytes));
  engine.leave();
}

// Says where this rank's elements lie for the others: in a copy when the result would overwrite
// them.
Shown show_for_scan(Engine& engine, const void* send, const void* receive, std::size_t bytes) {
  const std::size_t limit = engine.limits().alone_bytes;
  return send == receive ? engine.copies().copy_in_pieces(send, bytes, limit)
                         : engine.copies().show_in_pieces(send, bytes, limit);
}

// Returns this rank's elements: where the result overwrites them, from the copy that it has shown.
const void* own_input(Engine& engine, const std::vector<Shown>& shown, const void* send,
                      const void* receive, std::size_t bytes) {
  if (send != receive) return send;
  return engine.resolve(engine.rank(), shown[engine.rank()].send, bytes);
}

void point_inputs(Engine& engine, const std::vector<Shown>& shown, std::size_t bytes) {
  for (int peer = 0; peer < engine.size(); ++peer) {
    if (peer != engine.rank()) engine.copies().await(peer, shown[peer], bytes);
    engine.inputs[peer] = engine.resolve(peer, shown[peer].send, bytes);
  }
}

// Points the engine's inputs to the elements of all ranks, for a scan or a reduce_scatter. Short
// vectors travel in the slots; then the result is null. Longer ones are read where they lie: the
// result is what the ranks have shown, which others may still read when this rank is done. Where
// the kernel has to copy some of them (Path::cma), the inputs are left to the caller.
const std::vector<Shown>* point_all_inputs(Engine& engine, node::Slot& own, const void* send,
                                           void* receive, std::size_t bytes) {
  if (bytes <= engine.limits().one_shot_bytes) {
    engine.path = Path::inlined;
    std::memcpy(own.place(bytes), send, bytes);
    engine.team().slots().arrive(bytes);
    gather_payloads(engine, own, bytes);
    return nullptr;
  }
  engine.path = Path::mapped;  // unless the inputs are shown in copies
  const auto& shown = engine.meet(own, show_for_scan(engine, send, receive, bytes));
  if (read_by_cma(shown)) {
    engine.path = Path::cma;
  } else {
    point_inputs(engine, shown, bytes);
  }
  return &shown;
}

// Combines all inputs into `receive`, piece by piece as they come. Between the pieces this rank
// goes on with its own copy, which others wait for.
void combine_pieces(Engine& engine, const std::vector<Shown>& shown, const void* send,
                    void* receive, std::size_t count, const Operation& operation) {
  const std::size_t element = operation.element_bytes;
  const std::size_t step =
      std::max<std::size_t>(1, engine.copies().piece(count * element) / element);
  for (std::size_t begin = 0; begin < count; begin += step) {
    const std::size_t length = std::min(step, count - begin);
    const std::size_t offset = begin * element;
    engine.copies().add_until(offset + (length + step) * element);  // one piece ahead
    for (int peer = 0; peer < engine.size(); ++peer) {
      if (peer == engine.rank()) continue;  // its own may be shown nowhere
      engine.copies().await(peer, shown[peer], offset + length * element);
      engine.inputs[peer] = engine.resolve(peer, shown[peer].send, count * element) + offset;
    }
    engine.inputs[engine.rank()] = static_cast<const std::byte*>(send) + offset;
    void* output = static_cast<std::byte*>(receive) + offset;
    operation.combine(std::span(&output, 1), engine.inputs, length, kernels::Stores::temporal);
  }
}

// Some ranks have shown copies, and one of them may be on its way: who wants the result combines
// all inputs.
void combine_shown(Engine& engine, const std::vector<Shown>& shown, const void* send, void* receive,
                   std::size_t count, const Operation& operation) {
  // The result goes in place into a buffer that others read, so they must have read it first.
  const bool late = send == receive && shown[engine.rank()].copied == 0;
  const std::size_t bytes = count * operation.element_bytes;
  void* output = late ? engine.scratch().try_take(bytes) : receive;
  if (output == nullptr) engine.leave(false);
  combine_pieces(engine, shown, send, output, count, operation);
  engine.leave(shown, true);
  if (late) std::memcpy(receive, output, bytes);
}

bool any_copied(const std::vector<Shown>& shown) {
  return std::ranges::any_of(shown, [](const Shown& rank) { return rank.copied != 0; });
}

// What a rank shows of its buffers for a reduction. A small private input is copied; a root's need
// not be: it then combines alone.
Shown show_for_reduction(Engine& engine, const void* send, void* receive, std::size_t bytes,
                         int root) {
  channel::PeerMemory& memory = engine.memory();
  const bool has_output = root < 0 || root == engine.rank();
  const std::size_t limit = engine.limits().alone_bytes;
  const Reference input = memory.visible(send, bytes);
  Shown shown{input};
  if (input.is_none() && bytes <= limit) {
    shown = root == engine.rank() ? Shown{.copied = copied_whole}
                                  : engine.copies().copy_in_pieces(send, bytes, limit);
    if (has_output) shown.receive = memory.visible(receive, bytes);
    return shown;
  }
  if (input.is_none()) shown.send = memory.by_kernel(send, bytes);
  if (has_output) shown.receive = memory.reachable(receive, bytes);
  return shown;
}

// In a rooted reduction in which some ranks have shown copies and left, the root combines alone.
void combine_at_root(Engine& engine, const std::vector<Shown>& shown, const void* send,
                     void* receive, std::size_t count, const Operation& operation, int root) {
  if (engine.rank() != root) {
    engine.duties().owe_nothing();
    const std::uint64_t phase = engine.team().phases().skip();
    engine.team().phases().wait_for(root, phase);
    engine.duties().check_complete(phase);
    return;
  }
  engine.duties().owe_a_phase();
  combine_pieces(engine, shown, send, receive, count, operation);
  engine.duties().finish_owed_phase();
}

}  // namespace

void reduce(Engine& engine, const void* send, void* receive, std::size_t count,
            const Operation& operation, int root) {
  const std::size_t bytes = count * operation.element_bytes;
  const Kind kind = root < 0 ? Kind::allreduce : Kind::reduce;
  const std::uint32_t form = root < 0 ? operation.number : static_cast<std::uint32_t>(root);
  node::Slot& own = engine.arrivals().claim(kind, count, operation.code(), form);
  // At a root other ranks need not wait for what they put into their slots.
  const Limits& limits = engine.limits();
  if (bytes <= (root < 0 ? limits.one_shot_bytes : limits.rooted_bytes)) {
    one_shot(engine, own, send, receive, count, operation, root);
    return;
  }
  const bool has_output = root < 0 || root == engine.rank();
  const Scratch scratch(engine);
  const Shown mine = show_for_reduction(engine, send, receive, bytes, root);
  if (mine.copied != 0 && !has_output) {
    std::memcpy(own.payload, &mine, sizeof mine);
    engine.team().slots().arrive();
    engine.copies().add_rest();
    engine.team().phases().skip();
    return;
  }
  std::memcpy(own.payload, &mine, sizeof mine);
  engine.team().slots().arrive();
  engine.copies().add_ahead();
  const auto& shown = engine.collect(own);
  if (any_copied(shown)) {
    engine.path = Path::staged;
    if (root < 0) {
      combine_shown(engine, shown, send, receive, count, operation);
    } else {
      combine_at_root(engine, shown, send, receive, count, operation, root);
    }
  } else if (all_sends_mapped(shown) && outputs_mapped(shown, root)) {
    engine.path = Path::mapped;
    if (has_levels(engine, bytes, operation)) {
      two_level_reduce(engine, shown, count, operation, root);
    } else {
      push_slices(engine, shown, count, operation, root);
    }
  } else if (reaches_all(shown, root)) {
    engine.path = Path::cma;
    cma_reduce(engine, shown, send, receive, count, operation, root);
  } else {
    engine.path = Path::staged;
    staged_reduce(engine, shown, send, receive, count, operation, root);
  }
}

// Rank r combines the elements of ranks 0 to r (exclusive: r - 1). Rank 0's result of an exclusive
// scan is left alone, as MPI says.
void scan(Engine& engine, const void* send, void* receive, std::size_t count,
          const Operation& operation, bool exclusive) {
  const std::size_t bytes = count * operation.element_bytes;
  const Scratch scratch(engine);
  node::Slot& own =
      engine.arrivals().claim(exclusive ? Kind::exscan : Kind::scan, count, operation.code());
  const std::size_t ranks = static_cast<std::size_t>(engine.rank()) + (exclusive ? 0 : 1);
  const std::vector<Shown>* shown = point_all_inputs(engine, own, send, receive, bytes);
  if (engine.path == Path::cma) {
    cma_combine(engine, *shown, own_input(engine, *shown, send, receive, bytes),
                static_cast<int>(ranks), 0, receive, ranks > 0 ? count : 0, operation);
    return;
  }
  if (ranks > 0) {
    operation.combine(std::span(&receive, 1), std::span(engine.inputs).first(ranks), count,
                      kernels::Stores::temporal);
  }
  if (shown != nullptr) engine.leave(*shown, true);
}

void reduce_scatter(Engine& engine, const void* send, void* receive, const std::size_t* counts,
                    const Operation& operation) {
  std::size_t total = 0;
  std::size_t before = 0;
  for (int peer = 0; peer < engine.size(); ++peer) {
    if (peer == engine.rank()) before = total;
    total += counts[peer];
  }
  const std::size_t bytes = total * operation.element_bytes;
  const std::size_t offset = before * operation.element_bytes;
  const std::size_t count = counts[engine.rank()];
  const Scratch scratch(engine);
  const std::uint32_t form = os::hash_counts(counts, engine.size());  // all must agree on them
  node::Slot& own = engine.arrivals().claim(Kind::reduce_scatter, total, operation.code(), form);
  const std::vector<Shown>* shown = point_all_inputs(engine, own, send, receive, bytes);
  if (engine.path == Path::cma) {
    cma_combine(engine, *shown, own_input(engine, *shown, send, receive, bytes), engine.size(),
                before, receive, count, operation);
    return;
  }
  for (const void*& input : engine.inputs) input = static_cast<const std::byte*>(input) + offset;
  operation.combine(std::span(&receive, 1), engine.inputs, count, engine.stores(bytes));
  if (shown != nullptr) engine.leave(*shown, true);
}

}  // namespace ropewalk::collectives
