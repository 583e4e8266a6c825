#include "collectives/typed.hpp"

#include <numeric>
#include <vector>

#include "collectives/checks.hpp"
#include "collectives/nodes/algorithms.hpp"
#include "collectives/reductions.hpp"
#include "collectives/typed_parts.hpp"
#include "collectives/view.hpp"
#include "tuning/over_nodes.hpp"

namespace ropewalk::collectives::typed {
namespace {

// A refusal of this rank alone must reach the others, who are about to wait for it; behind the
// nonblocking calls that are under way, as the call itself would.
template <class Prepare>
auto or_refuse(Collectives& on, Prepare prepare) {
  try {
    return prepare();
  } catch (...) {
    Collectives::State& state = on.state();
    state.worker.drain();
    state.backend->refuse("");
    throw;
  }
}

// Both buffers of a call; in place, what is sent lies in the receive buffer.
struct Sides {
  template <class MakeSend, class MakeReceive>
  Sides(Collectives& on, const void* send_data, MakeSend make_send, MakeReceive make_receive)
      : send(or_refuse(on, make_send)), receive(or_refuse(on, make_receive)) {
    or_refuse(on, [&] {
      send.pack();
      if (is_in_place(send_data)) receive.pack();
    });
  }
  View send;
  View receive;
};

std::size_t ranks_of(const Collectives& on) { return static_cast<std::size_t>(on.size()); }

View view_of(const Collectives& on, const TypedBuffers& side) {
  return {side.elements, side.data, side.counts, side.displacements, on.size()};
}
// Views the side that the root alone has.
View view_at(const Collectives& on, const TypedBuffers& side, int root) {
  return {side.elements, side.data, side.counts, side.displacements,
          on.rank() == root ? on.size() : 0};
}

// Has call(backend) go to the hierarchy of several nodes, or to the engine of one.
template <class Call>
void with_backend(Collectives::State& state, Call call) {
  nodes::Nodes* hierarchy = state.backend->hierarchy();
  hierarchy != nullptr ? call(*hierarchy) : call(*state.backend->engine());
}

bool is_openmpi() { return mpi::family() == mpi::Family::openmpi; }

// `count` elements of one side of a reduction.
struct Vector {
  const void* data;
  std::size_t count;
};

// Has call(send, receive) make a reduction, with the elements packed where they must be. The first
// `results` elements that it receives are unpacked.
template <class Call>
void reduction_with(Collectives& on, const Reduction& reduction, Vector send, Vector receive,
                    std::size_t results, Call call) {
  Collectives::State& state = on.state();
  state.run([&] {
    auto* result = const_cast<void*>(receive.data);
    const Operation& operation = reduction.operation;
    if (!operation.packed || leaves_gaps_to_mpi(state, operation)) return call(send.data, result);
    const Elements& elements = reduction.elements;
    Sides sides(
        on, send.data, [&] { return View(elements, send.data, send.count); },
        [&] { return View(elements, result, receive.count); });
    // What this rank owes the others of a call that fails is done while the packed copies live.
    state.run([&] { call(sides.send.data(), sides.receive.data()); });
    sides.receive.unpack_only(results);
  });
}

}  // namespace

Elements elements_of(Collectives& on, rw_type type) {
  return or_refuse(on, [&] { return elements(type); });
}

Reduction reduction_of(Collectives& on, rw_type type, rw_op op) {
  return or_refuse(on, [&] {
    Reduction result{operation(type, op), {}};
    if (result.operation.packed) result.elements = elements(type);
    return result;
  });
}

void allreduce(Collectives& on, const void* send, void* receive, std::size_t count,
               const Reduction& reduction) {
  reduction_with(on, reduction, {send, count}, {receive, count}, count,
                 [&](const void* from, void* to) {
                   collectives::allreduce(on.state(), from, to, count, reduction.operation);
                 });
}

void reduce(Collectives& on, const void* send, void* receive, std::size_t count,
            const Reduction& reduction, int root) {
  const std::size_t results = on.rank() == root ? count : 0;
  reduction_with(on, reduction, {send, count}, {receive, results}, results,
                 [&](const void* from, void* to) {
                   collectives::reduce(on.state(), from, to, count, reduction.operation, root);
                 });
}

void scan(Collectives& on, const void* send, void* receive, std::size_t count,
          const Reduction& reduction, bool exclusive) {
  const std::size_t results = exclusive && on.rank() == 0 ? 0 : count;
  const std::size_t shown = is_in_place(send) ? count : results;
  reduction_with(on, reduction, {send, count}, {receive, shown}, results,
                 [&](const void* from, void* to) {
                   collectives::scan(on.state(), from, to, count, reduction.operation, exclusive);
                 });
}

void reduce_scatter(Collectives& on, const void* send, void* receive, const std::size_t* counts,
                    const Reduction& reduction) {
  Collectives::State& state = on.state();
  state.run([&] {
    check_counts(state, counts, "counts");
    const std::size_t total = std::accumulate(counts, counts + state.size, std::size_t{0});
    const std::size_t results = counts[state.rank];
    const std::size_t shown = is_in_place(send) ? total : results;
    reduction_with(on, reduction, {send, total}, {receive, shown}, results,
                   [&](const void* from, void* to) {
                     collectives::reduce_scatter(state, from, to, counts, reduction.operation);
                   });
  });
}

void reduce_scatter_block(Collectives& on, const void* send, void* receive, std::size_t count,
                          const Reduction& reduction) {
  on.state().run([&] {
    const std::vector<std::size_t> counts(ranks_of(on), count);
    reduce_scatter(on, send, receive, counts.data(), reduction);
  });
}

void broadcast(Collectives& on, const TypedBuffer& data, int root) {
  View view = or_refuse(on, [&] { return View(data.elements, data.data, data.count); });
  if (on.rank() == root) or_refuse(on, [&] { view.pack(); });
  on.broadcast(view.data(), view.bytes(), root);
  if (on.rank() != root) view.unpack();
}

void allgather(Collectives& on, const TypedBuffer& send, const TypedBuffer& receive) {
  const bool stays = is_in_place(send.data);
  Sides sides(
      on, send.data, [&] { return View(send.elements, send.data, stays ? 0 : send.count); },
      [&] { return View(receive.elements, receive.data, receive.count * ranks_of(on)); });
  on.allgather(sides.send.data(), sides.receive.data(),
               stays ? receive.count * receive.elements.bytes : sides.send.bytes());
  sides.receive.unpack();
}

void allgatherv(Collectives& on, const TypedBuffer& send, const TypedBuffers& receive) {
  const bool stays = is_in_place(send.data);
  Sides sides(
      on, send.data, [&] { return View(send.elements, send.data, stays ? 0 : send.count); },
      [&] { return view_of(on, receive); });
  on.allgatherv(sides.send.data(), sides.send.bytes(), sides.receive.data(), sides.receive.counts(),
                sides.receive.displacements());
  sides.receive.unpack();
}

void gather(Collectives& on, const TypedBuffer& send, const TypedBuffer& receive, int root) {
  const bool stays = is_in_place(send.data);
  const std::size_t results = on.rank() == root ? receive.count * ranks_of(on) : 0;
  Sides sides(
      on, send.data, [&] { return View(send.elements, send.data, stays ? 0 : send.count); },
      [&] { return View(receive.elements, receive.data, results); });
  on.gather(sides.send.data(), sides.receive.data(),
            stays ? receive.count * receive.elements.bytes : sides.send.bytes(), root);
  sides.receive.unpack();
}

void gatherv(Collectives& on, const TypedBuffer& send, const TypedBuffers& receive, int root) {
  const bool stays = is_in_place(send.data);
  Sides sides(
      on, send.data, [&] { return View(send.elements, send.data, stays ? 0 : send.count); },
      [&] { return view_at(on, receive, root); });
  on.gatherv(sides.send.data(), sides.send.bytes(), sides.receive.data(), sides.receive.counts(),
             sides.receive.displacements(), root);
  sides.receive.unpack();
}

void scatter(Collectives& on, const TypedBuffer& send, const TypedBuffer& receive, int root) {
  const bool stays = is_in_place(receive.data);
  const std::size_t all = on.rank() == root ? send.count * ranks_of(on) : 0;
  Sides sides(
      on, send.data, [&] { return View(send.elements, send.data, all); },
      [&] { return View(receive.elements, receive.data, stays ? 0 : receive.count); });
  on.scatter(sides.send.data(), sides.receive.data(),
             stays ? send.count * send.elements.bytes : sides.receive.bytes(), root);
  sides.receive.unpack();
}

void scatterv(Collectives& on, const TypedBuffers& send, const TypedBuffer& receive, int root) {
  const bool stays = is_in_place(receive.data);
  Sides sides(
      on, send.data, [&] { return view_at(on, send, root); },
      [&] { return View(receive.elements, receive.data, stays ? 0 : receive.count); });
  on.scatterv(sides.send.data(), sides.send.counts(), sides.send.displacements(),
              sides.receive.data(), sides.receive.bytes(), root);
  sides.receive.unpack();
}

void alltoall(Collectives& on, const TypedBuffer& send, const TypedBuffer& receive) {
  const bool stays = is_in_place(send.data);
  Sides sides(
      on, send.data,
      [&] { return View(send.elements, send.data, stays ? 0 : send.count * ranks_of(on)); },
      [&] { return View(receive.elements, receive.data, receive.count * ranks_of(on)); });
  on.alltoall(sides.send.data(), sides.receive.data(), receive.count * receive.elements.bytes);
  sides.receive.unpack();
}

void alltoallv(Collectives& on, const TypedBuffers& send, const TypedBuffers& receive) {
  Sides sides(
      on, send.data,
      [&] {
        return is_in_place(send.data) ? View(send.elements, send.data, 0) : view_of(on, send);
      },
      [&] { return view_of(on, receive); });
  on.alltoallv(sides.send.data(), sides.send.counts(), sides.send.displacements(),
               sides.receive.data(), sides.receive.counts(), sides.receive.displacements());
  sides.receive.unpack();
}

void neighbours(Collectives& on, const NeighbourRanks& ranks, const TypedBuffers& send,
                const TypedBuffers& receive) {
  const auto view = [&](const TypedBuffers& side, std::size_t blocks) {
    return View(side.elements, side.data, side.counts, side.displacements,
                static_cast<int>(blocks));
  };
  Sides sides(
      on, nullptr, [&] { return view(send, ranks.destinations.size()); },
      [&] { return view(receive, ranks.incoming.size()); });
  Collectives::State& state = on.state();
  state.run([&] {
    with_backend(state, [&](auto& backend) {
      exchange_neighbours(backend, ranks, sides.send.data(),
                          {sides.send.counts(), sides.send.displacements()}, sides.receive.data(),
                          {sides.receive.counts(), sides.receive.displacements()});
    });
  });
  sides.receive.unpack();
}

void neighbours(Collectives& on, const NeighbourRanks& ranks, Parts sends, Parts receives) {
  Collectives::State& state = on.state();
  state.run([&] {
    with_backend(state,
                 [&](auto& backend) { exchange_neighbours(backend, ranks, sends, receives); });
  });
}

void alltoallw(Collectives& on, Parts sends, Parts receives, bool in_place) {
  Collectives::State& state = on.state();
  state.run([&] {
    with_backend(state, [&](auto& backend) {
      using collectives::alltoallw;
      alltoallw(backend, sends, receives, in_place);
    });
  });
}

bool serves_neighbours(Collectives& on) {
  const nodes::Nodes* hierarchy = on.state().backend->hierarchy();
  return hierarchy == nullptr || tuning::serves_neighbours(hierarchy->shape(), is_openmpi());
}

bool serves_alltoallw(Collectives& on) {
  const nodes::Nodes* hierarchy = on.state().backend->hierarchy();
  const int most = hierarchy == nullptr ? on.size() : hierarchy->layout().most;
  return static_cast<std::size_t>(most) <= most_parts &&
         (hierarchy == nullptr || tuning::serves_alltoallw(hierarchy->shape(), is_openmpi()));
}

}  // namespace ropewalk::collectives::typed
