// Allgather(v) over nodes has two algorithms.
//
// For small blocks, each node gathers at its lowest rank; these ranks exchange what they have,
// twice as much in each round (Bruck et al. 1997), and pass all of it on in their nodes. For large
// blocks, what a node has is dealt to its ranks in equal slices; each sends its slice to the rank
// with the same slice of every other node, and writes what it receives from those into the results
// of all ranks of its node. A node's bytes leave it once for each other node, and every byte enters
// it once.
#include <algorithm>
#include <cstring>

#include "collectives/nodes/algorithms.hpp"
#include "collectives/nodes/buffers.hpp"
#include "collectives/nodes/messages.hpp"
#include "collectives/nodes/traffic.hpp"
#include "collectives/through_mpi.hpp"
#include "os/hash.hpp"

namespace ropewalk::collectives::nodes {
namespace {

constexpr std::size_t line_bytes = 64;  // slices end on borders of lines

// A stream of bytes is made of all blocks, node after node from a first one on.
struct Stream {
  const NodeLayout& layout;
  const Blocks& blocks;
  int first = 0;

  int node(int index) const { return (first + index) % layout.count(); }
  std::size_t bytes_of(int node_index) const {
    std::size_t bytes = 0;
    for (const int rank : layout.members[static_cast<std::size_t>(node_index)]) {
      bytes += blocks.counts[rank];
    }
    return bytes;
  }
  // part(rank, offset in its block, bytes) for each block that a range of a node's bytes touches.
  template <class Part>
  void for_parts(int node_index, Range range, Part part) const {
    std::size_t begin = 0;
    for (const int rank : layout.members[static_cast<std::size_t>(node_index)]) {
      const std::size_t end = begin + blocks.counts[rank];
      const std::size_t from = std::max(begin, range.begin);
      const std::size_t to = std::min(end, range.end);
      if (from < to) part(rank, from - begin, to - from);
      begin = end;
    }
  }
};

// All ranks must agree on all counts.
std::uint32_t form_of(const NodeLayout& layout, const Blocks& blocks) {
  return os::hash_counts(blocks.counts, layout.size());
}

// ---- small

// The blocks of nodes own, own + 1, ... lie behind each other at `stream`; the first is there.
void exchange_all(Nodes& nodes, const Header& header, const Stream& stream, std::byte* data) {
  const NodeLayout& layout = nodes.layout();
  const int count = layout.count();
  std::size_t have = stream.bytes_of(layout.node);
  for (int distance = 1; distance < count; distance *= 2) {
    const int blocks = std::min(distance, count - distance);
    std::size_t out_bytes = 0;
    std::size_t in_bytes = 0;
    for (int index = 0; index < blocks; ++index) {
      out_bytes += stream.bytes_of(stream.node(index));
      in_bytes += stream.bytes_of(stream.node(distance + index));
    }
    SmallMessage out(header, out_bytes);
    SmallMessage in(header, in_bytes);
    if (out_bytes > 0) std::memcpy(out.payload(), data, out_bytes);
    const int to = layout.at((layout.node - distance + count) % count, 0);
    const int from = layout.at((layout.node + distance) % count, 0);
    nodes.messages().exchange(out.data(), out.bytes(), to, in.data(), in.bytes(), from,
                              nodes.messages().movement_tag());
    check_header(header, in.header(), from);
    if (in_bytes > 0) std::memcpy(data + have, in.payload(), in_bytes);
    have += in_bytes;
  }
}

// This node's blocks, in the order of its ranks.
void gather_own(Nodes& nodes, const void* send, const Blocks& blocks, std::byte* data) {
  const NodeLayout& layout = nodes.layout();
  const std::size_t own = blocks.counts[layout.rank];
  if (nodes.alone()) {
    if (own > 0) std::memcpy(data, send, own);
    return;
  }
  std::vector<std::size_t> counts;
  std::vector<std::size_t> displacements;
  std::size_t end = 0;
  for (const int rank : layout.own()) {
    counts.push_back(blocks.counts[rank]);
    displacements.push_back(end);
    end += counts.back();
  }
  const Blocks here{counts.data(), displacements.data()};
  collectives::gather(nodes.engine(), send, own, data, layout.place() == 0 ? &here : nullptr, 0);
}

void through_leaders(Nodes& nodes, const void* send, void* receive, const Blocks& blocks,
                     std::size_t total, std::uint32_t form) {
  const NodeLayout& layout = nodes.layout();
  const Stream stream{layout, blocks, layout.node};
  const CallMemory data(total);
  gather_own(nodes, send, blocks, data.data());
  if (layout.place() == 0) {
    exchange_all(nodes, header_of(Kind::allgather, total, form), stream, data.data());
  }
  broadcast_inside(nodes, data.data(), total, 0);
  const std::byte* from = data.data();
  auto* target = static_cast<std::byte*>(receive);
  for (int index = 0; index < layout.count(); ++index) {
    for (const int rank : layout.members[static_cast<std::size_t>(stream.node(index))]) {
      const std::size_t bytes = blocks.counts[rank];
      std::byte* to = target + blocks.displacements[rank];
      // In place one's own is there. Where that is empty, another's block may begin at its address.
      const bool there = rank == layout.rank && to == send;
      if (bytes > 0 && !there) std::memcpy(to, from, bytes);
      from += bytes;
    }
  }
}

// ---- large

// This is a chunk of what one node has of all blocks.
struct NodeChunk {
  int node;
  Range range;
};

struct AllgatherMoves {
  Nodes& nodes;
  NodeBuffers& buffers;
  const Blocks& blocks;
  std::vector<const std::size_t*> displacements;  // of each rank of the node: they may differ
  Stream stream;
  std::byte* result;
  std::vector<NodeChunk> sends;
  std::vector<NodeChunk> receives;
  std::byte* rooms = nullptr;  // for chunks that do not lie together
  int step = 1;                // a rank of this node whose block is pulled
  std::size_t pulled = 0;

  static constexpr std::size_t depth = 4;

  std::size_t chunk_bytes() const { return nodes.values()[tuning::Id::nodes_allgather_chunk]; }

  std::byte* room(std::size_t slot) {
    if (rooms == nullptr) rooms = nodes.engine().scratch().take(2 * depth * chunk_bytes());
    return rooms + slot * chunk_bytes();
  }

  // Where a chunk lies in this rank's result, if it lies together there.
  std::byte* in_result(const NodeChunk& chunk) const {
    std::byte* first = nullptr;
    std::byte* end = nullptr;
    bool whole = true;
    stream.for_parts(chunk.node, chunk.range, [&](int rank, std::size_t offset, std::size_t bytes) {
      std::byte* at = result + blocks.displacements[rank] + offset;
      whole = whole && (first == nullptr || at == end);
      if (first == nullptr) first = at;
      end = at + bytes;
    });
    return whole ? first : nullptr;
  }

  const void* source(std::size_t number, std::size_t slot) {
    const NodeLayout& layout = nodes.layout();
    const Range range = sends[number].range;
    const std::byte* seen = nullptr;
    std::byte* to = nullptr;
    std::size_t done = 0;
    stream.for_parts(layout.node, range, [&](int rank, std::size_t offset, std::size_t bytes) {
      const int place = layout.place_of[static_cast<std::size_t>(rank)];
      if (bytes == range.length()) seen = buffers.seen(place, offset, bytes);
      if (seen != nullptr) return;
      if (to == nullptr) to = room(slot);
      buffers.read(place, offset, to + done, bytes);
      done += bytes;
    });
    return seen != nullptr ? seen : to;
  }

  void* sink(std::size_t number, std::size_t slot) {
    std::byte* direct = in_result(receives[number]);
    return direct != nullptr ? direct : room(depth + slot);
  }

  void received(std::size_t number, std::size_t slot) {
    const NodeChunk& chunk = receives[number];
    const std::byte* from = in_result(chunk);
    if (from == nullptr) from = room(depth + slot);
    stream.for_parts(chunk.node, chunk.range, [&](int rank, std::size_t offset, std::size_t bytes) {
      for (std::size_t place = 0; place < displacements.size(); ++place) {
        buffers.write(static_cast<int>(place), displacements[place][rank] + offset, from, bytes);
      }
      from += bytes;
    });
  }

  // Pulls the blocks of the other ranks of the node, one chunk at a time.
  bool work() {
    const NodeLayout& layout = nodes.layout();
    const auto ranks = static_cast<int>(layout.own().size());
    if (step >= ranks) return false;
    const int place = (layout.place() + step) % ranks;
    const int rank = layout.at(layout.node, place);
    const std::size_t now = std::min(blocks.counts[rank] - pulled, chunk_bytes());
    buffers.read(place, pulled, result + blocks.displacements[rank] + pulled, now);
    pulled += now;
    if (pulled == blocks.counts[rank]) {
      ++step;
      pulled = 0;
    }
    return step < ranks;
  }
};

// Lists the slices of all nodes' bytes, as the leaders of one slice exchange them, by their
// distance.
void list_chunks(Nodes& nodes, AllgatherMoves& moves, Traffic& traffic) {
  const NodeLayout& layout = nodes.layout();
  const int count = layout.count();
  const int place = layout.place();
  if (place >= layout.least) return;
  const std::size_t length = moves.chunk_bytes();
  const auto each = [&](int node, auto add) {
    const Range slice =
        collectives::slice(moves.stream.bytes_of(node), place, layout.least, line_bytes);
    for (std::size_t at = slice.begin; at < slice.end; at += length) {
      add(NodeChunk{node, {at, std::min(at + length, slice.end)}});
    }
  };
  for (int distance = 1; distance < count; ++distance) {
    const int to = (layout.node + distance) % count;
    const int from = (layout.node - distance + count) % count;
    each(layout.node, [&](const NodeChunk& chunk) {
      moves.sends.push_back(chunk);
      traffic.send(layout.at(to, place), chunk.range.length());
    });
    each(from, [&](const NodeChunk& chunk) {
      moves.receives.push_back(chunk);
      traffic.receive(layout.at(from, place), chunk.range.length());
    });
  }
}

std::size_t end_of(const NodeLayout& layout, const Blocks& blocks) {
  std::size_t end = 0;
  for (int rank = 0; rank < layout.size(); ++rank) {
    if (blocks.counts[rank] == 0) continue;
    end = std::max(end, blocks.displacements[rank] + blocks.counts[rank]);
  }
  return end;
}

void in_slices(Nodes& nodes, const void* send, void* receive, const Blocks& blocks,
               std::size_t total, std::uint32_t form) {
  const NodeLayout& layout = nodes.layout();
  Engine& engine = nodes.engine();
  const Scratch scratch(engine);
  const std::size_t own_bytes = blocks.counts[layout.rank];
  node::Slot& own = engine.arrivals().claim(Kind::allgather, total, form);
  Shown mine = engine.copies().show(send, own_bytes);
  const Landing landing(engine, receive, end_of(layout, blocks));
  landing.show(mine);
  const auto ranks = static_cast<std::size_t>(layout.size());
  std::copy_n(blocks.displacements, ranks, show_table(engine, own, ranks));
  const auto& shown = engine.meet(own, mine);

  std::byte* result = landing.data();
  NodeBuffers buffers(engine, shown, send, result, total);
  AllgatherMoves moves{nodes, buffers, blocks, {}, Stream{layout, blocks}, result, {}, {}};
  for (int place = 0; place < engine.size(); ++place) {
    moves.displacements.push_back(table_of(engine, place));
  }
  Traffic traffic(nodes, header_of(Kind::allgather, total, form), AllgatherMoves::depth);
  list_chunks(nodes, moves, traffic);
  buffers.read(layout.place(), 0, result + blocks.displacements[layout.rank], own_bytes);
  traffic.run(moves);
  engine.leave();
  for (int rank = 0; rank < layout.size(); ++rank) {
    landing.take(blocks.displacements[rank], blocks.counts[rank]);
  }
}

}  // namespace

void allgather(Nodes& nodes, const void* send, void* receive, const Blocks& blocks) {
  const NodeLayout& layout = nodes.layout();
  std::size_t total = 0;
  for (int rank = 0; rank < layout.size(); ++rank) total += blocks.counts[rank];
  using tuning::AllgatherWay;
  const AllgatherWay way = tuning::choose_allgather(nodes.values(), nodes.shape(), total);
  if (way == AllgatherWay::mpi) {
    ThroughMpi(nodes).allgather(send, receive, blocks);
    return;
  }
  const std::uint32_t form = form_of(layout, blocks);
  nodes.run([&] {
    nodes.path = Path::nodes;
    if (way == AllgatherWay::slices) {
      in_slices(nodes, send, receive, blocks, total, form);
    } else if (total > 0) {
      through_leaders(nodes, send, receive, blocks, total, form);
    }
  });
}

}  // namespace ropewalk::collectives::nodes
