// This file has alltoallw over nodes: parts go straight from rank to rank; those inside a node are
// copied while messages are under way.
#include <vector>

#include "collectives/nodes/algorithms.hpp"
#include "collectives/nodes/typed_messages.hpp"

namespace ropewalk::collectives::nodes {
namespace {

using Parts = std::span<const TypedPart>;

constexpr std::size_t depth = 16;  // as in alltoall.cc

const TypedPart& part_of(Parts parts, int rank) { return parts[static_cast<std::size_t>(rank)]; }

// Every rank begins with another one of a node.
void list_sends(const NodeLayout& layout, Parts sends, int node, TypedMessages& messages) {
  const auto& members = layout.members[static_cast<std::size_t>(node)];
  for (std::size_t index = 0; index < members.size(); ++index) {
    const std::size_t at = (index + static_cast<std::size_t>(layout.place())) % members.size();
    messages.send(members[at], part_of(sends, members[at]));
  }
}

void list_receives(const NodeLayout& layout, Parts receives, int node, TypedMessages& messages) {
  for (const int rank : layout.members[static_cast<std::size_t>(node)]) {
    messages.receive(rank, part_of(receives, rank));
  }
}

std::vector<TypedPart> inside(const NodeLayout& layout, Parts parts) {
  std::vector<TypedPart> own;
  own.reserve(layout.own().size());
  for (const int rank : layout.own()) own.push_back(part_of(parts, rank));
  return own;
}

}  // namespace

void alltoallw(Nodes& nodes, Parts sends, Parts receives, bool in_place) {
  nodes.run([&] {
    nodes.path = Path::nodes;
    const NodeLayout& layout = nodes.layout();
    const Scratch scratch(nodes.engine());
    TypedMessages messages(nodes, header_of(Kind::alltoall, 0, 2), depth, in_place);
    for (int distance = 1; distance < layout.count(); ++distance) {
      list_sends(layout, sends, (layout.node + distance) % layout.count(), messages);
      list_receives(layout, receives, (layout.node - distance + layout.count()) % layout.count(),
                    messages);
    }
    messages.begin();
    const std::vector<TypedPart> from = inside(layout, sends);
    const std::vector<TypedPart> to = inside(layout, receives);
    collectives::alltoallw(nodes.engine(), from, to, in_place,
                           {layout.own(), [&] { messages.advance(); }});
    messages.finish();
  });
}

}  // namespace ropewalk::collectives::nodes
