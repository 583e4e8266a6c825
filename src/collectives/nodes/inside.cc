// What the ranks of one node do among themselves, where a node may have one rank only.
#include <cstring>

#include "collectives/algorithms.hpp"
#include "collectives/nodes/algorithms.hpp"

namespace ropewalk::collectives::nodes {

void reduce_inside(Nodes& nodes, const void* send, void* receive, std::size_t count,
                   const Operation& operation, int place) {
  if (!nodes.alone()) {
    collectives::reduce(nodes.engine(), send, receive, count, operation, place);
  } else if (send != receive && count > 0) {
    std::memcpy(receive, send, count * operation.element_bytes);
  }
}

void broadcast_inside(Nodes& nodes, void* data, std::size_t bytes, int place) {
  if (!nodes.alone()) collectives::broadcast(nodes.engine(), data, bytes, place);
}

}  // namespace ropewalk::collectives::nodes
