// A broadcast over nodes takes one of three ways.
//
// The smallest data goes from the root to all ranks, through a binomial tree. Small data goes from
// the root to a rank of each other node through a binomial tree, and inside each node as in any
// team. With large data, the ranks of the root's node each send a slice of its buffer along a chain
// of nodes, chunk by chunk; the rank with that slice on the next node passes a chunk on and writes
// it into the results of its node while the next one arrives. Each node's links carry the bytes
// once in and once out, shared out over its ranks.
#include <algorithm>
#include <bit>
#include <cstring>

#include "collectives/nodes/algorithms.hpp"
#include "collectives/nodes/buffers.hpp"
#include "collectives/nodes/messages.hpp"
#include "collectives/nodes/traffic.hpp"
#include "collectives/through_mpi.hpp"

namespace ropewalk::collectives::nodes {
namespace {

constexpr std::size_t page_bytes = 4096;  // slices end on borders of small pages

// ---- small

// Returns the rank of a node that gets the data first: on the root's own node, the root itself.
int leader_of(const NodeLayout& layout, int node, int root) {
  return node == layout.node_of[static_cast<std::size_t>(root)] ? root : layout.at(node, 0);
}

void through_tree(Nodes& nodes, void* data, std::size_t bytes, int root) {
  const NodeLayout& layout = nodes.layout();
  const int count = layout.count();
  const int first = layout.node_of[static_cast<std::size_t>(root)];
  const auto distance = static_cast<unsigned>((layout.node - first + count) % count);
  const auto leader_at = [&](unsigned other) {
    return leader_of(layout, (first + static_cast<int>(other)) % count, root);
  };
  const int leader = leader_at(distance);
  const int place = layout.place_of[static_cast<std::size_t>(leader)];
  if (layout.rank != leader) {
    collectives::broadcast(nodes.engine(), data, bytes, place);
    return;
  }
  const Header header = header_of(Kind::broadcast, bytes, 0, static_cast<std::uint32_t>(root));
  SmallMessage message(header, bytes);
  const unsigned all = std::bit_ceil(static_cast<unsigned>(count));
  const unsigned own = distance == 0 ? all : distance & -distance;  // nodes below this one
  if (distance == 0) {
    std::memcpy(message.payload(), data, bytes);
  } else {
    const int parent = leader_at(distance - own);
    nodes.messages().receive(message.data(), message.bytes(), parent,
                             nodes.messages().movement_tag());
    check_header(header, message.header(), parent);
    std::memcpy(data, message.payload(), bytes);
  }
  Requests requests;
  for (unsigned child = own / 2; child > 0; child /= 2) {
    if (distance + child >= static_cast<unsigned>(count)) continue;
    requests.sends.push_back(mpi::isend(message.data(), message.bytes(),
                                        leader_at(distance + child),
                                        nodes.messages().movement_tag(), nodes.messages().comm()));
  }
  broadcast_inside(nodes, data, bytes, place);
  nodes.waits().wait(requests);
}

// ---- large

struct ChainMoves {
  Nodes& nodes;
  NodeBuffers& buffers;
  std::byte* data;
  std::size_t bytes;
  int root;
  std::size_t chunk;
  Range slice;                 // of this rank, if it has one
  bool first;                  // on the root's node
  std::byte* rooms = nullptr;  // for chunks of a root's buffer that must be read
  std::size_t arrived = 0;
  std::size_t pulled = 0;  // by a rank of the root's node

  std::size_t begin(std::size_t number) const { return slice.begin + number * chunk; }
  std::size_t length(std::size_t number) const {
    return std::min(chunk, slice.end - begin(number));
  }
  int root_place() const { return nodes.layout().place_of[static_cast<std::size_t>(root)]; }

  const void* source(std::size_t number, std::size_t slot) {
    if (!first) return number < arrived ? data + begin(number) : nullptr;
    const std::byte* seen = buffers.seen(root_place(), begin(number), length(number));
    if (seen != nullptr) return seen;
    if (rooms == nullptr) rooms = nodes.engine().scratch().take(depth * chunk);
    buffers.read(root_place(), begin(number), rooms + slot * chunk, length(number));
    return rooms + slot * chunk;
  }
  void* sink(std::size_t number, std::size_t) { return data + begin(number); }
  void received(std::size_t number, std::size_t) {
    arrived = number + 1;
    buffers.write_all(begin(number), data + begin(number), length(number));
  }
  // Ranks of the root's node take it from there.
  bool work() {
    if (!first || nodes.layout().rank == root || pulled == bytes) return false;
    const std::size_t now = std::min(bytes - pulled, chunk);
    buffers.read(root_place(), pulled, data + pulled, now);
    pulled += now;
    return pulled < bytes;
  }

  static constexpr std::size_t depth = 4;
};

void along_chain(Nodes& nodes, void* data, std::size_t bytes, int root) {
  const NodeLayout& layout = nodes.layout();
  Engine& engine = nodes.engine();
  const Scratch scratch(engine);
  node::Slot& own =
      engine.arrivals().claim(Kind::broadcast, bytes, 0, static_cast<std::uint32_t>(root));
  const int count = layout.count();
  const int root_node = layout.node_of[static_cast<std::size_t>(root)];
  const int distance = (layout.node - root_node + count) % count;
  Shown mine;
  if (layout.rank == root) mine = engine.copies().show(data, bytes);
  const Landing landing(engine, data, layout.rank == root ? 0 : bytes);
  if (layout.rank != root) landing.show(mine);
  const auto& shown = engine.meet(own, mine);

  auto* result = layout.rank == root ? static_cast<std::byte*>(data) : landing.data();
  NodeBuffers buffers(engine, shown, result, result, bytes);
  const int lanes = layout.least;
  const std::size_t chunk =
      tuning::broadcast_chunk(nodes.values(), bytes / static_cast<std::size_t>(lanes));
  const int place = layout.place();
  const Range slice =
      place < lanes ? collectives::slice(bytes, place, lanes, page_bytes) : Range{0, 0};
  ChainMoves chain{nodes, buffers, result, bytes, root, chunk, slice, distance == 0};
  Traffic traffic(nodes, header_of(Kind::broadcast, bytes, 0, static_cast<std::uint32_t>(root)),
                  ChainMoves::depth);
  const int before = layout.at((layout.node - 1 + count) % count, std::min(place, lanes - 1));
  const int behind = layout.at((layout.node + 1) % count, std::min(place, lanes - 1));
  for (std::size_t number = 0; slice.begin + number * chain.chunk < slice.end; ++number) {
    if (distance > 0) traffic.receive(before, chain.length(number));
    if (distance < count - 1) traffic.send(behind, chain.length(number));
  }
  traffic.run(chain);
  engine.leave();
  if (layout.rank != root) landing.take(0, bytes);
}

}  // namespace

void broadcast_inside(Nodes& nodes, void* data, std::size_t bytes, int place) {
  if (!nodes.alone()) collectives::broadcast(nodes.engine(), data, bytes, place);
}

void broadcast(Nodes& nodes, void* data, std::size_t bytes, int root) {
  using tuning::BroadcastWay;
  const BroadcastWay way = tuning::choose_broadcast(nodes.values(), nodes.shape(), bytes);
  if (way == BroadcastWay::mpi) {
    ThroughMpi(nodes).broadcast(data, bytes, root);
    return;
  }
  nodes.run([&] {
    nodes.path = Path::nodes;
    if (way == BroadcastWay::chain) {
      along_chain(nodes, data, bytes, root);
    } else if (way == BroadcastWay::flat) {
      flat_broadcast(nodes, data, bytes, root);
    } else if (bytes > 0) {
      through_tree(nodes, data, bytes, root);
    }
  });
}

}  // namespace ropewalk::collectives::nodes
