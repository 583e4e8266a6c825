#include "irregular/checks.hpp"

#include <limits>
#include <string>

namespace ropewalk::irregular {
namespace {

std::string member(std::size_t neighbor, const char* list, std::size_t at) {
  return "neighbors[" + std::to_string(neighbor) + "]." + list + "[" + std::to_string(at) + "]";
}

void check_indices(const std::vector<std::int64_t>& indices, std::size_t neighbor, const char* list,
                   std::size_t elements) {
  for (std::size_t at = 0; at < indices.size(); ++at) {
    if (indices[at] >= 0 && static_cast<std::size_t>(indices[at]) < elements) continue;
    refuse(member(neighbor, list, at) + ": " + std::to_string(indices[at]) +
           ", expected an index below the " + std::to_string(elements) + " elements of the array");
  }
}

void check_ranks(const std::vector<Neighbor>& neighbors, int ranks) {
  std::vector<bool> listed(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < neighbors.size(); ++i) {
    const std::string name = "neighbors[" + std::to_string(i) + "].rank: ";
    const int rank = neighbors[i].rank;
    if (rank < 0 || rank >= ranks) {
      refuse(name + std::to_string(rank) + ", expected 0 to " + std::to_string(ranks - 1));
    }
    if (listed[static_cast<std::size_t>(rank)]) {
      refuse(name + std::to_string(rank) + " is listed twice; join its lists");
    }
    listed[static_cast<std::size_t>(rank)] = true;
  }
}

void check_received_once(const std::vector<Neighbor>& neighbors, std::size_t elements) {
  std::vector<bool> received(elements);
  for (std::size_t i = 0; i < neighbors.size(); ++i) {
    for (std::size_t at = 0; at < neighbors[i].receive.size(); ++at) {
      const std::int64_t index = neighbors[i].receive[at];
      if (received[static_cast<std::size_t>(index)]) {
        refuse(member(i, "receive", at) + ": element " + std::to_string(index) +
               " is received twice, expected one value for each");
      }
      received[static_cast<std::size_t>(index)] = true;
    }
  }
}

}  // namespace

void check_lists(const std::vector<Neighbor>& neighbors, int ranks, std::size_t elements,
                 std::size_t element_bytes) {
  if (element_bytes == 0) refuse("element_bytes: 0, expected 1 or more; pass the element's size");
  const auto most = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
  if (elements > most / element_bytes) {
    refuse("elements: " + std::to_string(elements) + " of " + std::to_string(element_bytes) +
           " bytes are more than memory can hold; pass the length of this rank's array");
  }
  check_ranks(neighbors, ranks);
  for (std::size_t i = 0; i < neighbors.size(); ++i) {
    check_indices(neighbors[i].send, i, "send", elements);
    check_indices(neighbors[i].receive, i, "receive", elements);
  }
  check_received_once(neighbors, elements);
}

void check_promises(const std::vector<Promise>& own, const std::vector<Promise>& theirs, int rank) {
  for (std::size_t peer = 0; peer < own.size(); ++peer) {
    if (own[peer].is_listed != 0 && theirs[peer].is_listed == 0) {
      refuse("neighbors: rank " + std::to_string(rank) + " lists rank " + std::to_string(peer) +
             ", which does not list it; list each other, with empty lists where nothing goes");
    }
    if (theirs[peer].sent == own[peer].received) continue;
    refuse("neighbors: rank " + std::to_string(peer) + " sends " +
           std::to_string(theirs[peer].sent) + " elements to rank " + std::to_string(rank) +
           ", which expects " + std::to_string(own[peer].received) +
           "; both numbers must be equal");
  }
}

void check_operation(std::size_t element_bytes, ElementType type, ReductionOp op) {
  if (!supports(op, type)) {
    refuse(std::string("op: ") + name(op) + " is not defined for elements of type " + name(type) +
           "; see MPI 4.1, section 6.9.2");
  }
  if (element_bytes % size_of(type) == 0) return;
  refuse("type: " + std::string(name(type)) + " of " + std::to_string(size_of(type)) +
         " bytes, expected one whose size divides the " + std::to_string(element_bytes) +
         " bytes of an element");
}

}  // namespace ropewalk::irregular
