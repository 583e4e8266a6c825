// This file exchanges blocks between neighbours on several nodes. Those on other nodes get
// messages; those on this one are served by its engine, while the messages are under way.
#include <algorithm>
#include <array>
#include <vector>

#include "collectives/nodes/algorithms.hpp"
#include "collectives/nodes/typed_messages.hpp"

namespace ropewalk::collectives::nodes {
namespace {

using Parts = std::span<const TypedPart>;

// A header and each block are under way at a time, so that no rank waits for another's turn.
constexpr std::size_t depth = 2 * most_directions;

// The neighbours on this node, by their rank in its team. The others are nobody there.
struct Inside {
  explicit Inside(const NodeLayout& layout, const NeighbourRanks& ranks) {
    const auto place = [&](int rank) {
      return rank >= 0 && layout.is_own(rank) ? layout.place_of[static_cast<std::size_t>(rank)]
                                              : -1;
    };
    for (const int rank : ranks.destinations) destinations.push_back(place(rank));
    for (const IncomingBlock& from : ranks.incoming) {
      incoming.push_back({place(from.source), from.block});
    }
  }
  bool sends(std::size_t block) const { return destinations[block] >= 0; }
  NeighbourRanks ranks() const { return {destinations, incoming}; }

  std::vector<int> destinations;
  std::vector<IncomingBlock> incoming;
};

struct Remote {
  int peer;
  std::size_t number;  // of the block among those that the sender sends
  const TypedPart* part;
};

// The blocks between two ranks one after the other, in the order of the sender.
void sort(std::vector<Remote>& blocks) {
  std::ranges::sort(blocks, [](const Remote& one, const Remote& other) {
    return one.peer != other.peer ? one.peer < other.peer : one.number < other.number;
  });
}

void list(const NodeLayout& layout, const NeighbourRanks& ranks, Parts sends, Parts receives,
          TypedMessages& messages) {
  const auto is_remote = [&](int rank) { return rank >= 0 && !layout.is_own(rank); };
  std::vector<Remote> blocks;
  for (std::size_t k = 0; k < ranks.destinations.size(); ++k) {
    if (is_remote(ranks.destinations[k])) blocks.push_back({ranks.destinations[k], k, &sends[k]});
  }
  sort(blocks);
  for (const Remote& block : blocks) messages.send(block.peer, *block.part);
  blocks.clear();
  for (std::size_t k = 0; k < ranks.incoming.size(); ++k) {
    const IncomingBlock& from = ranks.incoming[k];
    if (is_remote(from.source)) blocks.push_back({from.source, from.block, &receives[k]});
  }
  sort(blocks);
  for (const Remote& block : blocks) messages.receive(block.peer, *block.part);
}

// exchange_inside(neighbours, call) serves the neighbours on this node.
template <class ExchangeInside>
void exchange(Nodes& nodes, const NeighbourRanks& ranks, Parts sends, Parts receives,
              std::uint32_t form, ExchangeInside exchange_inside) {
  nodes.run([&] {
    nodes.path = Path::nodes;
    const NodeLayout& layout = nodes.layout();
    const Scratch scratch(nodes.engine());
    TypedMessages messages(nodes, header_of(Kind::neighbours, 0, form), depth, false);
    list(layout, ranks, sends, receives, messages);
    messages.begin();
    exchange_inside(Inside(layout, ranks),
                    CallOverNodes{layout.own(), [&] { messages.advance(); }});
    messages.finish();
  });
}

const Pattern& bytes_pattern() {
  static const Pattern pattern = [] {
    Pattern made;
    made.bytes = 1;
    made.extent = 1;
    made.known = true;
    made.blocks = {one_run(1)};
    made.high = 1;
    return made;
  }();
  return pattern;
}

std::vector<TypedPart> as_parts(const void* data, const Blocks& blocks, std::size_t number) {
  std::vector<TypedPart> parts(number);
  for (std::size_t k = 0; k < number; ++k) {
    parts[k].data = static_cast<const std::byte*>(data) + blocks.displacements[k];
    parts[k].count = blocks.counts[k];
    parts[k].pattern = &bytes_pattern();
  }
  return parts;
}

}  // namespace

void exchange_neighbours(Nodes& nodes, const NeighbourRanks& ranks, const void* send,
                         const Blocks& sends, void* receive, const Blocks& receives) {
  const std::vector<TypedPart> out = as_parts(send, sends, ranks.destinations.size());
  const std::vector<TypedPart> in = as_parts(receive, receives, ranks.incoming.size());
  exchange(nodes, ranks, out, in, 0, [&](const Inside& inside, const CallOverNodes& call) {
    // What goes to other nodes is nothing that this one is shown.
    std::array<std::size_t, most_directions> counts{};
    for (std::size_t k = 0; k < ranks.destinations.size(); ++k) {
      if (inside.sends(k)) counts[k] = sends.counts[k];
    }
    collectives::exchange_neighbours(nodes.engine(), inside.ranks(), send,
                                     {counts.data(), sends.displacements}, receive, receives, call);
  });
}

void exchange_neighbours(Nodes& nodes, const NeighbourRanks& ranks, Parts sends, Parts receives) {
  exchange(nodes, ranks, sends, receives, 1, [&](const Inside& inside, const CallOverNodes& call) {
    std::vector<TypedPart> shown(sends.begin(), sends.end());
    std::vector<TypedPart> taken(receives.begin(), receives.end());
    for (std::size_t k = 0; k < shown.size(); ++k) {
      if (!inside.sends(k)) shown[k] = {};
    }
    for (std::size_t k = 0; k < taken.size(); ++k) {
      if (inside.incoming[k].source < 0) taken[k] = {};
    }
    collectives::exchange_neighbours(nodes.engine(), inside.ranks(), shown, taken, call);
  });
}

}  // namespace ropewalk::collectives::nodes
