// This file has alltoall(v) over nodes.
//
// The blocks from the ranks of one node to those of another go in one message where they are small:
// the leader of this pair of nodes collects them from the others' buffers, and the leader on the
// other node distributes them. The ranks of a node lead its pairs in turn. Large blocks go straight
// from rank to rank. Blocks inside the node are pulled.
#include <algorithm>
#include <optional>

#include "collectives/nodes/algorithms.hpp"
#include "collectives/nodes/buffers.hpp"
#include "collectives/nodes/traffic.hpp"
#include "collectives/through_mpi.hpp"
#include "mpi/fallback.hpp"

namespace ropewalk::collectives::nodes {
namespace {

// Where the blocks of a rank are and how long, in its send buffer and in its result.
struct Table {
  const std::size_t* numbers;
  std::size_t ranks;
  std::size_t sends(int rank) const { return numbers[rank]; }
  std::size_t sent_at(int rank) const { return numbers[ranks + static_cast<std::size_t>(rank)]; }
  std::size_t receives(int rank) const {
    return numbers[2 * ranks + static_cast<std::size_t>(rank)];
  }
  std::size_t received_at(int rank) const {
    return numbers[3 * ranks + static_cast<std::size_t>(rank)];
  }
};

struct Item {
  int node;  // the other one; all blocks between it and this node, if rank is -1
  int rank;  // the other one
  std::size_t bytes;
};

struct AlltoallMoves {
  Nodes& nodes;
  NodeBuffers& buffers;
  std::vector<Table> tables;  // of the ranks of this node
  const std::byte* send;
  std::byte* result;
  std::vector<Item> sends;
  std::vector<Item> receives;
  std::byte* rooms = nullptr;
  std::size_t room_bytes = 0;
  int step = 0;  // a rank of this node whose block is pulled
  std::size_t pulled = 0;
  int wrong = -1;  // a rank of this node that sends another number of bytes than expected

  static constexpr std::size_t depth = 16;

  const NodeLayout& layout() const { return nodes.layout(); }
  const Table& own() const { return tables[static_cast<std::size_t>(layout().place())]; }
  const std::vector<int>& members(int node) const {
    return layout().members[static_cast<std::size_t>(node)];
  }
  std::byte* room(std::size_t slot) {
    if (rooms == nullptr) {
      rooms = nodes.engine().scratch().take((send_slots() + std::min(depth, 2 * receives.size())) *
                                            room_bytes);
    }
    return rooms + slot * room_bytes;
  }
  // There are few slots where there are few messages; headers count as messages.
  std::size_t send_slots() const { return std::min(depth, 2 * sends.size()); }

  const void* source(std::size_t number, std::size_t slot) {
    const Item& item = sends[number];
    if (item.rank >= 0) return send + own().sent_at(item.rank);
    std::byte* const packed = room(slot);
    std::byte* to = packed;
    for (std::size_t place = 0; place < tables.size(); ++place) {
      for (const int rank : members(item.node)) {
        const std::size_t bytes = tables[place].sends(rank);
        buffers.read(static_cast<int>(place), tables[place].sent_at(rank), to, bytes);
        to += bytes;
      }
    }
    return packed;
  }
  void* sink(std::size_t number, std::size_t slot) {
    const Item& item = receives[number];
    return item.rank >= 0 ? result + own().received_at(item.rank) : room(send_slots() + slot);
  }
  void received(std::size_t number, std::size_t slot) {
    const Item& item = receives[number];
    if (item.rank >= 0) return;
    const std::byte* from = room(send_slots() + slot);
    for (const int rank : members(item.node)) {
      for (std::size_t place = 0; place < tables.size(); ++place) {
        const std::size_t bytes = tables[place].receives(rank);
        buffers.write(static_cast<int>(place), tables[place].received_at(rank), from, bytes);
        from += bytes;
      }
    }
  }
  bool work() {
    const auto ranks = static_cast<int>(tables.size());
    if (step == ranks) return false;
    const int place = (layout().place() + step) % ranks;
    const Table& theirs = tables[static_cast<std::size_t>(place)];
    const std::size_t bytes = theirs.sends(layout().rank);
    const int peer = layout().at(layout().node, place);
    if (bytes != own().receives(peer)) wrong = peer;
    const std::size_t most = nodes.values()[tuning::Id::nodes_alltoall_copy];
    const std::size_t now = wrong == peer ? 0 : std::min(bytes - pulled, most);
    buffers.read(place, theirs.sent_at(layout().rank) + pulled,
                 result + own().received_at(peer) + pulled, now);
    pulled += now;
    if (wrong == peer || pulled == bytes) {
      ++step;
      pulled = 0;
    }
    return step < ranks;
  }

  void list(Traffic& traffic);
  void list_sends(Traffic& traffic, int node);
  void list_receives(Traffic& traffic, int node);
};

// Returns the rank of `node` that leads what goes between it and `other`.
int leader_of(const NodeLayout& layout, int node, int other) {
  const auto& members = layout.members[static_cast<std::size_t>(node)];
  return members[static_cast<std::size_t>(other) % members.size()];
}

void AlltoallMoves::list_sends(Traffic& traffic, int node) {
  std::size_t bytes = 0;
  for (const Table& table : tables) {
    for (const int rank : members(node)) bytes += table.sends(rank);
  }
  // Both nodes decide it from the same bytes: those between them.
  if (tuning::sends_together(nodes.values(), bytes, tables.size(), members(node).size())) {
    if (leader_of(layout(), layout().node, node) != layout().rank) return;
    room_bytes = std::max(room_bytes, bytes);
    sends.push_back({node, -1, bytes});
    traffic.send(leader_of(layout(), node, layout().node), bytes);
    return;
  }
  // Each begins with another rank.
  const std::size_t ranks = members(node).size();
  for (std::size_t index = 0; index < ranks; ++index) {
    const auto at = (index + static_cast<std::size_t>(layout().place())) % ranks;
    const int rank = members(node)[at];
    sends.push_back({node, rank, own().sends(rank)});
    traffic.send(rank, sends.back().bytes);
  }
}

void AlltoallMoves::list_receives(Traffic& traffic, int node) {
  std::size_t bytes = 0;
  for (const Table& table : tables) {
    for (const int rank : members(node)) bytes += table.receives(rank);
  }
  if (tuning::sends_together(nodes.values(), bytes, members(node).size(), tables.size())) {
    if (leader_of(layout(), layout().node, node) != layout().rank) return;
    room_bytes = std::max(room_bytes, bytes);
    receives.push_back({node, -1, bytes});
    traffic.receive(leader_of(layout(), node, layout().node), bytes);
    return;
  }
  const std::size_t ranks = members(node).size();
  for (std::size_t index = 0; index < ranks; ++index) {
    const int rank = members(node)[index];
    receives.push_back({node, rank, own().receives(rank)});
    traffic.receive(rank, receives.back().bytes);
  }
}

void AlltoallMoves::list(Traffic& traffic) {
  const int count = layout().count();
  for (int distance = 1; distance < count; ++distance) {
    list_sends(traffic, (layout().node + distance) % count);
    list_receives(traffic, (layout().node - distance + count) % count);
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

void show_blocks(Engine& engine, node::Slot& own, std::size_t ranks, const Blocks& sends,
                 const Blocks& receives) {
  std::size_t* table = show_table(engine, own, 4 * ranks);
  for (const std::size_t* numbers :
       {sends.counts, sends.displacements, receives.counts, receives.displacements}) {
    table = std::copy_n(numbers, ranks, table);
  }
}

// `each` has the bytes of every block, where all are alike.
void exchange(Nodes& nodes, const void* send, const Blocks& sends, void* receive,
              const Blocks& receives, std::optional<std::size_t> each) {
  const NodeLayout& layout = nodes.layout();
  Engine& engine = nodes.engine();
  const Scratch scratch(engine);
  const auto ranks = static_cast<std::size_t>(layout.size());
  node::Slot& own = engine.arrivals().claim(Kind::alltoall, each.value_or(0), each ? 0 : 1);
  const std::size_t send_bytes = end_of(layout, sends);
  const std::size_t result_bytes = end_of(layout, receives);
  Shown mine = send == receive ? engine.copies().show_copy(send, send_bytes)
                               : engine.copies().show(send, send_bytes);
  if (send == receive) send = engine.resolve(engine.rank(), mine.send, send_bytes);
  const Landing landing(engine, receive, result_bytes);
  landing.show(mine);
  show_blocks(engine, own, ranks, sends, receives);
  const auto& shown = engine.meet(own, mine);

  NodeBuffers buffers(engine, shown, send, landing.data(), std::max(send_bytes, result_bytes));
  AlltoallMoves moves{nodes,          buffers, {}, static_cast<const std::byte*>(send),
                      landing.data(), {},      {}};
  for (int place = 0; place < engine.size(); ++place) {
    moves.tables.push_back({table_of(engine, place), ranks});
  }
  Traffic traffic(nodes, Header{own.call, own.count}, AlltoallMoves::depth);
  moves.list(traffic);
  traffic.run(moves);
  engine.leave();
  for (int rank = 0; rank < layout.size(); ++rank) {
    landing.take(receives.displacements[rank], receives.counts[rank]);
  }
  if (moves.wrong >= 0) {
    throw Error(ErrorCode::argument, "receive_counts: rank " + std::to_string(moves.wrong) +
                                         " sends another number of bytes than rank " +
                                         std::to_string(layout.rank) + " expects from it");
  }
}

}  // namespace

void alltoall(Nodes& nodes, const void* send, void* receive, std::size_t bytes_each) {
  const auto ranks = static_cast<std::size_t>(nodes.layout().size());
  const std::vector<std::size_t> counts(ranks, bytes_each);
  std::vector<std::size_t> displacements;
  for (std::size_t peer = 0; peer < ranks; ++peer) displacements.push_back(peer * bytes_each);
  const Blocks blocks{counts.data(), displacements.data()};
  if (!tuning::serves_alltoall(nodes.values(), nodes.shape(), bytes_each)) {
    ThroughMpi(nodes).alltoall(send, receive, bytes_each);
    return;
  }
  nodes.run([&] {
    nodes.path = Path::nodes;
    if (bytes_each > 0) exchange(nodes, send, blocks, receive, blocks, bytes_each);
  });
}

void alltoallv(Nodes& nodes, const void* send, const Blocks& sends, void* receive,
               const Blocks& receives) {
  if (!tuning::serves_alltoallv(nodes.shape(), mpi::fallback::counts_need_agreement())) {
    ThroughMpi(nodes).alltoallv(send, sends, receive, receives);
    return;
  }
  nodes.run([&] {
    nodes.path = Path::nodes;
    exchange(nodes, send, sends, receive, receives, std::nullopt);
  });
}

}  // namespace ropewalk::collectives::nodes
