// Allreduce, reduce and scan over nodes.
#include <cstring>
#include <optional>
#include <vector>

#include "collectives/nodes/algorithms.hpp"
#include "collectives/nodes/arena_block.hpp"
#include "collectives/nodes/pipeline.hpp"
#include "collectives/through_mpi.hpp"
#include "mpi/datatypes.hpp"

namespace ropewalk::collectives::nodes {
namespace {

// One rank a node: the root on its own node, the lowest elsewhere.
std::vector<int> leaders_of(const NodeLayout& layout, int root) {
  std::vector<int> leaders;
  for (const std::vector<int>& members : layout.members) leaders.push_back(members.front());
  if (root >= 0) {
    leaders[static_cast<std::size_t>(layout.node_of[static_cast<std::size_t>(root)])] = root;
  }
  return leaders;
}

// Elements of this node's ranks combined in their order, for the rank at a place; others pass null
// for `receive`.
void reduce_inside(Nodes& nodes, const void* send, void* receive, std::size_t count,
                   const Operation& operation, int place) {
  if (!nodes.alone()) {
    collectives::reduce(nodes.engine(), send, receive, count, operation, place);
  } else if (send != receive && count > 0) {
    std::memcpy(receive, send, count * operation.element_bytes);
  }
}

void reduce_through_leaders(Nodes& nodes, const void* send, void* receive, std::size_t count,
                            const Operation& operation, int root) {
  const NodeLayout& layout = nodes.layout();
  const std::vector<int> leaders = leaders_of(layout, root);
  const int leader = leaders[static_cast<std::size_t>(layout.node)];
  const int place = layout.place_of[static_cast<std::size_t>(leader)];
  const bool leads = leader == layout.rank;
  const bool has_output = root < 0 || root == layout.rank;
  const std::size_t bytes = count * operation.element_bytes;
  std::optional<ArenaBlock> partial;
  if (leads && !has_output) partial.emplace(bytes);
  void* result = leads ? (has_output ? receive : partial->data()) : nullptr;
  reduce_inside(nodes, send, result, count, operation, place);
  if (root >= 0) {
    if (leads) {
      tree_reduce(nodes, leaders, result, count, operation,
                  layout.node_of[static_cast<std::size_t>(root)]);
    }
    return;
  }
  if (leads) doubling_allreduce(nodes, leaders, result, count, operation);
  broadcast_inside(nodes, receive, bytes, place);
}

// Divides the sums of averages that the algorithm has not divided on its way.
void divide(const Operation& operation, void* data, std::size_t count) {
  if (operation.average == nullptr || count == 0) return;
  const void* sum = data;
  operation.average(&data, 1, &sum, 1, count, operation.divisor, kernels::Stores::temporal);
}

Choice choose_for(Nodes& nodes, std::size_t bytes, const Operation& operation, int root) {
  const NodesSettings& settings = nodes.settings();
  Choice choice =
      tuning::choose_reduction(nodes.values(), nodes.shape(),
                               {bytes, root >= 0, settings.allreduce, settings.longest_message});
  const bool known = mpi::datatype(operation.type) != mpi::datatype_null();  // not float16
  if (choice.algorithm == Algorithm::mpi && !known) choice.algorithm = Algorithm::ring;
  if (choice.algorithm == Algorithm::whole && !known) choice.algorithm = Algorithm::doubling;
  return choice;
}

// Returns false where the algorithm divides averages on its way.
bool reduce_by(const Choice& choice, Nodes& nodes, const Vectors& vectors,
               const Operation& operation) {
  const auto& [send, receive, count, root] = vectors;
  const Operation sum = operation.partial();
  switch (choice.algorithm) {
    case Algorithm::flat:
      if (root >= 0) return flat_reduce(nodes, send, receive, count, sum, root), true;
      if (send != receive && count > 0) {
        std::memcpy(receive, send, count * operation.element_bytes);
      }
      return flat_allreduce(nodes, receive, count, sum), true;
    case Algorithm::doubling:
      return reduce_through_leaders(nodes, send, receive, count, sum, root), true;
    default:
      break;
  }
  const bool ring = choice.algorithm == Algorithm::ring && root < 0;
  pipelined_reduce(nodes, vectors, ring ? operation : sum, choice);
  return !ring;
}

}  // namespace

void reduce(Nodes& nodes, const void* send, void* receive, std::size_t count,
            const Operation& operation, int root) {
  if (operation.by_mpi) {  // the user's: it may not commute, and types may have gaps
    nodes.path = Path::mpi;
    ThroughMpi(nodes).reduce(send, receive, count, operation, root);
    return;
  }
  const Choice choice = choose_for(nodes, count * operation.element_bytes, operation, root);
  const bool has_output = root < 0 || root == nodes.layout().rank;
  if (choice.algorithm == Algorithm::whole) {
    ThroughMpi(nodes).reduce(send, receive, count, operation.partial(), root);
    if (has_output) divide(operation, receive, count);
    return;
  }
  nodes.path = Path::nodes;
  nodes.run([&] {
    const Vectors vectors{send, has_output ? receive : nullptr, count, root};
    const bool is_sum = reduce_by(choice, nodes, vectors, operation);
    if (has_output && is_sum) divide(operation, receive, count);
  });
}

}  // namespace ropewalk::collectives::nodes
