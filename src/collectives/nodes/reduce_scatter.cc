// Reduce_scatter over nodes.
//
// A block of the result belongs to one rank. On every other node a leader, the rank at the same
// place where there is one, combines what its node has of that block, chunk by chunk, and sends it
// there; the block's rank does the same on its own node and combines what came, in the order of
// nodes. Each node sends its part of the blocks of all other nodes' ranks, and receives one part of
// its own ranks' blocks from each other node: the lower bound. All ranks combine and send, while
// the next chunks are on their way.
//
// Elements are combined in the order of ranks within each node, then of the nodes.
#include <algorithm>
#include <cstring>

#include "collectives/nodes/algorithms.hpp"
#include "collectives/nodes/buffers.hpp"
#include "collectives/nodes/traffic.hpp"
#include "collectives/through_mpi.hpp"
#include "mpi/datatypes.hpp"
#include "os/hash.hpp"

namespace ropewalk::collectives::nodes {
namespace {

struct Part {
  std::size_t first;  // element of all
  std::size_t count;
};

struct ReduceScatterMoves {
  Nodes& nodes;
  NodeBuffers& buffers;
  const Operation& operation;
  std::byte* result;
  std::vector<Part> sends;
  std::vector<Part> receives;  // of one chunk: from one node after the other
  std::vector<Part> own;       // chunks of this rank's block
  std::size_t first = 0;       // element of all where it begins
  std::size_t chunk = 0;       // bytes of a room
  std::byte* send_rooms = nullptr;
  std::byte* receive_rooms = nullptr;
  std::byte* own_room = nullptr;
  std::byte* read_rooms = nullptr;  // for inputs that must be read
  std::vector<const void*> inputs = {};
  std::size_t arrived = 0;
  std::size_t combined = 0;  // chunks of the own block

  std::size_t bytes(std::size_t elements) const { return elements * operation.element_bytes; }

  // What this node has of a part, into `to`.
  void combine_own(const Part& part, void* to) {
    Engine& engine = nodes.engine();
    for (int place = 0; place < engine.size(); ++place) {
      const std::size_t offset = bytes(part.first);
      const void* input = buffers.seen(place, offset, bytes(part.count));
      if (input == nullptr) {
        if (read_rooms == nullptr) {
          read_rooms = engine.scratch().take(static_cast<std::size_t>(engine.size()) * chunk);
        }
        std::byte* room = read_rooms + static_cast<std::size_t>(place) * chunk;
        buffers.read(place, offset, room, bytes(part.count));
        input = room;
      }
      engine.inputs[static_cast<std::size_t>(place)] = input;
    }
    operation.combine(std::span(&to, 1), engine.inputs, part.count, kernels::Stores::temporal);
  }

  const void* source(std::size_t number, std::size_t slot) {
    std::byte* room = send_rooms + slot * chunk;
    combine_own(sends[number], room);
    return room;
  }
  void* sink(std::size_t, std::size_t slot) { return receive_rooms + slot * chunk; }
  // Parts of a chunk come from the nodes at distance 1, 2, ...; all are kept until the last.
  void received(std::size_t number, std::size_t slot) {
    const NodeLayout& layout = nodes.layout();
    const auto others = static_cast<std::size_t>(layout.count() - 1);
    const int distance = 1 + static_cast<int>(number % others);
    const int from = (layout.node - distance + layout.count()) % layout.count();
    inputs[static_cast<std::size_t>(from)] = receive_rooms + slot * chunk;
    if (number % others == others - 1) combine_all(number / others);
  }
  void combine_all(std::size_t index) {
    const Part& part = own[index];
    const NodeLayout& layout = nodes.layout();
    combine_own(part, own_room);
    inputs[static_cast<std::size_t>(layout.node)] = own_room;
    void* to = result + bytes(part.first - first);
    operation.combine(std::span(&to, 1), inputs, part.count, kernels::Stores::temporal);
  }
  bool work() { return false; }

  void list(Traffic& traffic, const std::vector<std::size_t>& firsts, const std::size_t* counts);
};

// Returns the rank of `node` that combines for `rank`, which is on another node.
int leader_of(const NodeLayout& layout, int node, int rank) {
  const auto& members = layout.members[static_cast<std::size_t>(node)];
  const int place = layout.place_of[static_cast<std::size_t>(rank)];
  return members[static_cast<std::size_t>(place) % members.size()];
}

// Moves are listed by chunk, then by the distance of nodes.
void ReduceScatterMoves::list(Traffic& traffic, const std::vector<std::size_t>& firsts,
                              const std::size_t* counts) {
  const NodeLayout& layout = nodes.layout();
  const int count = layout.count();
  const std::size_t elements = std::max<std::size_t>(1, chunk / operation.element_bytes);
  const auto part_of = [&](int rank, std::size_t begin) {
    return Part{firsts[static_cast<std::size_t>(rank)] + begin,
                std::min(elements, counts[rank] - begin)};
  };
  const std::size_t largest = *std::max_element(counts, counts + layout.size());
  for (std::size_t begin = 0; begin < largest; begin += elements) {
    for (int distance = 1; distance < count; ++distance) {
      const int to = (layout.node + distance) % count;
      const int from = (layout.node - distance + count) % count;
      for (const int rank : layout.members[static_cast<std::size_t>(to)]) {
        if (begin >= counts[rank]) continue;
        if (leader_of(layout, layout.node, rank) != layout.rank) continue;
        sends.push_back(part_of(rank, begin));
        traffic.send(rank, bytes(sends.back().count));
      }
      if (begin >= counts[layout.rank]) continue;
      receives.push_back(part_of(layout.rank, begin));
      traffic.receive(leader_of(layout, from, layout.rank), bytes(receives.back().count));
    }
    if (begin < counts[layout.rank]) own.push_back(part_of(layout.rank, begin));
  }
}

bool keeps_order(const NodeLayout& layout, const Operation& operation) {
  return layout.contiguous || !operation.by_mpi || mpi::commutative(operation.mpi_op);
}

void exchange(Nodes& nodes, const void* send, void* receive, const std::size_t* counts,
              const Operation& operation) {
  const NodeLayout& layout = nodes.layout();
  std::vector<std::size_t> firsts;
  std::size_t total = 0;
  for (int rank = 0; rank < layout.size(); ++rank) {
    firsts.push_back(total);
    total += counts[rank];
  }
  if (total == 0) return;
  Engine& engine = nodes.engine();
  const Scratch scratch(engine);
  const std::size_t bytes = total * operation.element_bytes;
  const std::uint32_t form = os::hash_counts(counts, layout.size());  // all must agree on them
  node::Slot& own = engine.arrivals().claim(Kind::reduce_scatter, total, operation.code(), form);
  // In place the result would overwrite what others read.
  const Shown mine =
      send == receive ? engine.copies().show_copy(send, bytes) : engine.copies().show(send, bytes);
  if (send == receive) send = engine.resolve(engine.rank(), mine.send, bytes);
  const auto& shown = engine.meet(own, mine);

  NodeBuffers buffers(engine, shown, send, receive, bytes);
  const auto others = static_cast<std::size_t>(layout.count() - 1);
  ReduceScatterMoves moves{nodes, buffers, operation, static_cast<std::byte*>(receive), {}, {}, {}};
  moves.first = firsts[static_cast<std::size_t>(layout.rank)];
  const std::size_t largest = *std::max_element(counts, counts + layout.size());
  const std::size_t most = tuning::reduce_scatter_chunk(nodes.values(), others);
  moves.chunk =
      std::max(operation.element_bytes, std::min(most, largest * operation.element_bytes));
  moves.inputs.resize(static_cast<std::size_t>(layout.count()));
  const std::size_t depth = 2 * others;  // the next chunk of every node
  Traffic traffic(nodes, Header{own.call, own.count}, depth, others);
  moves.list(traffic, firsts, counts);
  moves.send_rooms = engine.scratch().take(depth * moves.chunk);
  moves.receive_rooms = engine.scratch().take(Traffic::slots(depth, others) * moves.chunk);
  moves.own_room = engine.scratch().take(moves.chunk);
  traffic.run(moves);
  engine.leave();
}

}  // namespace

void reduce_scatter(Nodes& nodes, const void* send, void* receive, const std::size_t* counts,
                    const Operation& operation) {
  std::size_t bytes = 0;
  for (int rank = 0; rank < nodes.layout().size(); ++rank) {
    bytes += counts[rank] * operation.element_bytes;
  }
  // Elements that travel packed arrive as the program has them, with their gaps: only MPI knows
  // these.
  if (operation.packed || !keeps_order(nodes.layout(), operation) ||
      !tuning::serves_reduce_scatter(nodes.values(), nodes.shape(), bytes)) {
    ThroughMpi(nodes).reduce_scatter(send, receive, counts, operation);
    return;
  }
  nodes.run([&] {
    nodes.path = Path::nodes;
    exchange(nodes, send, receive, counts, operation);
  });
}

}  // namespace ropewalk::collectives::nodes
