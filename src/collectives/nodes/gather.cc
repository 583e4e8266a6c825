// This file has gather(v) and scatter(v) over nodes.
//
// The blocks that a node's ranks send to the root, or get from it, go in one message between the
// root and the lowest rank of the node where they are small; larger blocks go straight between the
// root and each rank. On the root's own node they are gathered and scattered as in any team. The
// choice follows from the total of the node's bytes. The root knows it, and so do the node's ranks
// after they have met.
#include <algorithm>
#include <cstring>

#include "collectives/nodes/algorithms.hpp"
#include "collectives/nodes/buffers.hpp"
#include "collectives/nodes/traffic.hpp"
#include "collectives/through_mpi.hpp"
#include "mpi/fallback.hpp"

namespace ropewalk::collectives::nodes {
namespace {

constexpr std::size_t depth = 8;

// These are the blocks of one node's ranks, out of all blocks.
struct OwnBlocks {
  OwnBlocks(const NodeLayout& layout, const Blocks& all) {
    for (const int rank : layout.own()) {
      counts.push_back(all.counts[rank]);
      displacements.push_back(all.displacements[rank]);
    }
  }
  Blocks blocks() const { return {counts.data(), displacements.data()}; }
  std::vector<std::size_t> counts;
  std::vector<std::size_t> displacements;
};

struct Item {
  int node;
  int rank;  // -1: all of the node
  std::size_t bytes;
};

// At the root: what comes from, or goes to, the other nodes.
std::vector<Item> items_of(const NodeLayout& layout, const Blocks& blocks,
                           std::size_t together_bytes) {
  std::vector<Item> items;
  for (int distance = 1; distance < layout.count(); ++distance) {
    const int node = (layout.node + distance) % layout.count();
    const auto& members = layout.members[static_cast<std::size_t>(node)];
    std::size_t bytes = 0;
    for (const int rank : members) bytes += blocks.counts[rank];
    if (bytes <= together_bytes) {
      items.push_back({node, -1, bytes});
    } else {
      for (const int rank : members) items.push_back({node, rank, blocks.counts[rank]});
    }
  }
  return items;
}

int peer_of(const NodeLayout& layout, const Item& item) {
  return item.rank >= 0 ? item.rank : layout.at(item.node, 0);
}

// Up to so many bytes, the blocks of a node go in one message.
std::size_t together_bytes(const Nodes& nodes) {
  return nodes.values()[tuning::Id::nodes_rooted_together];
}

struct RootMoves {
  const NodeLayout& layout;
  const Blocks& blocks;
  std::byte* data;
  std::size_t together_bytes;
  std::vector<Item> items = items_of(layout, blocks, together_bytes);
  CallMemory rooms{depth * together_bytes};  // where blocks of a node lie together

  std::byte* room(std::size_t slot) { return rooms.data() + slot * together_bytes; }
  const std::vector<int>& members(const Item& item) const {
    return layout.members[static_cast<std::size_t>(item.node)];
  }
  bool work() { return false; }

  // Scatter sends from here.
  const void* source(std::size_t number, std::size_t slot) {
    const Item& item = items[number];
    if (item.rank >= 0) return data + blocks.displacements[item.rank];
    std::byte* to = room(slot);
    for (const int rank : members(item)) {
      const std::size_t bytes = blocks.counts[rank];
      if (bytes > 0) std::memcpy(to, data + blocks.displacements[rank], bytes);
      to += bytes;
    }
    return room(slot);
  }
  // Gather.
  void* sink(std::size_t number, std::size_t slot) {
    const Item& item = items[number];
    return item.rank >= 0 ? data + blocks.displacements[item.rank] : room(slot);
  }
  void received(std::size_t number, std::size_t slot) {
    const Item& item = items[number];
    if (item.rank >= 0) return;
    const std::byte* from = room(slot);
    for (const int rank : members(item)) {
      const std::size_t bytes = blocks.counts[rank];
      if (bytes > 0) std::memcpy(data + blocks.displacements[rank], from, bytes);
      from += bytes;
    }
  }
};

// On a node other than the root's, a rank has one message, or none.
struct SingleMove {
  std::byte* data;
  bool work() { return false; }
  const void* source(std::size_t, std::size_t) { return data; }
  void* sink(std::size_t, std::size_t) { return data; }
  void received(std::size_t, std::size_t) {}
};

// The ranks of a node show their buffers and how many bytes each has. The result is the sum of all
// bytes.
struct Meeting {
  Meeting(Engine& engine, node::Slot& own, const Shown& mine, std::size_t bytes)
      : shown(engine.meet(own, with_bytes(own, mine, bytes))) {
    for (int place = 0; place < engine.size(); ++place) {
      const node::Slot& slot = place == engine.rank() ? own : engine.team().slots().arrival(place);
      std::uint64_t theirs = 0;
      std::memcpy(&theirs, slot.payload + sizeof(Shown), sizeof theirs);
      counts.push_back(theirs);
      total += theirs;
    }
  }
  static const Shown& with_bytes(node::Slot& own, const Shown& mine, std::uint64_t bytes) {
    std::memcpy(own.payload + sizeof(Shown), &bytes, sizeof bytes);
    return mine;
  }
  const std::vector<Shown>& shown;
  std::vector<std::size_t> counts;
  std::size_t total = 0;
};

void gather_elsewhere(Nodes& nodes, const Header& header, const void* send, std::size_t bytes,
                      int root) {
  Engine& engine = nodes.engine();
  const Scratch scratch(engine);
  node::Slot& own = engine.arrivals().claim(Kind::gather, 0, 0, static_cast<std::uint32_t>(root));
  const Meeting meeting(engine, own, engine.copies().show(send, bytes), bytes);
  Traffic traffic(nodes, header, 1);
  SingleMove moves{static_cast<std::byte*>(const_cast<void*>(send))};
  const bool together = meeting.total <= together_bytes(nodes);
  if (!together) {
    traffic.send(root, bytes);
  } else if (engine.rank() == 0) {
    NodeBuffers buffers(engine, meeting.shown, send, nullptr, meeting.total);
    moves.data = engine.scratch().take(std::max<std::size_t>(1, meeting.total));
    std::byte* to = moves.data;
    for (int place = 0; place < engine.size(); ++place) {
      const std::size_t part = meeting.counts[static_cast<std::size_t>(place)];
      buffers.read(place, 0, to, part);
      to += part;
    }
    traffic.send(root, meeting.total);
  }
  if (together) engine.leave(meeting.shown, true);
  traffic.run(moves);
  if (!together) engine.leave(meeting.shown, true);
}

void scatter_elsewhere(Nodes& nodes, const Header& header, void* receive, std::size_t bytes,
                       int root) {
  Engine& engine = nodes.engine();
  const Scratch scratch(engine);
  node::Slot& own = engine.arrivals().claim(Kind::scatter, 0, 0, static_cast<std::uint32_t>(root));
  const Landing landing(engine, receive, bytes);
  Shown mine;
  landing.show(mine);
  const Meeting meeting(engine, own, mine, bytes);
  Traffic traffic(nodes, header, 1);
  SingleMove moves{landing.data()};
  const bool together = meeting.total <= together_bytes(nodes);
  const bool deals = together && engine.rank() == 0;
  if (!together) {
    traffic.receive(root, bytes);
  } else if (deals) {
    moves.data = engine.scratch().take(std::max<std::size_t>(1, meeting.total));
    traffic.receive(root, meeting.total);
  }
  traffic.run(moves);
  if (deals) {
    NodeBuffers buffers(engine, meeting.shown, nullptr, landing.data(), meeting.total);
    const std::byte* from = moves.data;
    for (int place = 0; place < engine.size(); ++place) {
      const std::size_t part = meeting.counts[static_cast<std::size_t>(place)];
      buffers.write(place, 0, from, part);
      from += part;
    }
  }
  engine.leave();
  landing.take(0, bytes);
}

void gather_at_root(Nodes& nodes, const Header& header, const void* send, std::size_t bytes,
                    void* receive, const Blocks& blocks) {
  const NodeLayout& layout = nodes.layout();
  RootMoves moves{layout, blocks, static_cast<std::byte*>(receive), together_bytes(nodes)};
  Traffic traffic(nodes, header, depth);
  for (const Item& item : moves.items) traffic.receive(peer_of(layout, item), item.bytes);
  traffic.step(moves);
  const OwnBlocks own(layout, blocks);
  const Blocks here = own.blocks();
  if (nodes.alone()) {
    std::byte* to = moves.data + blocks.displacements[layout.rank];
    if (bytes > 0 && to != send) std::memcpy(to, send, bytes);
  } else {
    collectives::gather(nodes.engine(), send, bytes, receive, &here, layout.place());
  }
  traffic.run(moves);
}

void scatter_at_root(Nodes& nodes, const Header& header, const void* send, const Blocks& blocks,
                     void* receive, std::size_t bytes) {
  const NodeLayout& layout = nodes.layout();
  RootMoves moves{layout, blocks, static_cast<std::byte*>(const_cast<void*>(send)),
                  together_bytes(nodes)};
  Traffic traffic(nodes, header, depth);
  for (const Item& item : moves.items) traffic.send(peer_of(layout, item), item.bytes);
  traffic.step(moves);
  const OwnBlocks own(layout, blocks);
  const Blocks here = own.blocks();
  if (!nodes.alone()) {
    collectives::scatter(nodes.engine(), send, &here, receive, bytes, layout.place());
  } else if (receive != nullptr && bytes > 0) {
    std::memcpy(receive, moves.data + blocks.displacements[layout.rank], bytes);
  }
  traffic.run(moves);
}

// `bytes` is the length of a block, where all are equal.
bool serves_gather(const Nodes& nodes, const Blocks& blocks, std::size_t bytes) {
  if (blocks.equal) return tuning::serves_gather(nodes.values(), nodes.shape(), bytes);
  return tuning::serves_gatherv(nodes.values(), nodes.shape(),
                                mpi::fallback::counts_need_agreement());
}

bool serves_scatter(const Nodes& nodes, const Blocks& blocks, std::size_t bytes) {
  if (blocks.equal) return tuning::serves_scatter(nodes.values(), nodes.shape(), bytes);
  return tuning::serves_scatterv(nodes.values(), nodes.shape(),
                                 mpi::fallback::counts_need_agreement());
}

// With blocks of equal sizes, which all ranks know.
bool goes_flat(const Nodes& nodes, const Blocks& blocks, std::size_t bytes) {
  return blocks.equal && tuning::rooted_goes_flat(nodes.values(), nodes.shape(), bytes);
}

}  // namespace

void gather(Nodes& nodes, const void* send, std::size_t bytes, void* receive, const Blocks& blocks,
            int root) {
  const NodeLayout& layout = nodes.layout();
  if (goes_flat(nodes, blocks, bytes)) {
    nodes.path = Path::nodes;
    return nodes.run([&] { flat_gather(nodes, send, bytes, receive, blocks, root); });
  }
  if (!serves_gather(nodes, blocks, bytes)) {
    ThroughMpi(nodes).gather(send, bytes, receive, blocks, root);
    return;
  }
  const Header header = header_of(Kind::gather, 0, 0, static_cast<std::uint32_t>(root));
  nodes.run([&] {
    nodes.path = Path::nodes;
    if (!layout.is_own(root)) {
      gather_elsewhere(nodes, header, send, bytes, root);
    } else if (layout.rank == root) {
      gather_at_root(nodes, header, send, bytes, receive, blocks);
    } else {
      const int place = layout.place_of[static_cast<std::size_t>(root)];
      collectives::gather(nodes.engine(), send, bytes, receive, nullptr, place);
    }
  });
}

void scatter(Nodes& nodes, const void* send, const Blocks& blocks, void* receive, std::size_t bytes,
             int root) {
  const NodeLayout& layout = nodes.layout();
  if (goes_flat(nodes, blocks, bytes)) {
    nodes.path = Path::nodes;
    return nodes.run([&] { flat_scatter(nodes, send, blocks, receive, bytes, root); });
  }
  if (!serves_scatter(nodes, blocks, bytes)) {
    ThroughMpi(nodes).scatter(send, blocks, receive, bytes, root);
    return;
  }
  const Header header = header_of(Kind::scatter, 0, 0, static_cast<std::uint32_t>(root));
  nodes.run([&] {
    nodes.path = Path::nodes;
    if (!layout.is_own(root)) {
      scatter_elsewhere(nodes, header, receive, bytes, root);
    } else if (layout.rank == root) {
      scatter_at_root(nodes, header, send, blocks, receive, bytes);
    } else {
      const int place = layout.place_of[static_cast<std::size_t>(root)];
      collectives::scatter(nodes.engine(), nullptr, nullptr, receive, bytes, place);
    }
  });
}

}  // namespace ropewalk::collectives::nodes
