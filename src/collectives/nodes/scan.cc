// In a scan over nodes each rank hears from the one below it what all those below have combined,
// adds its own elements, and passes the result on. A vector goes in chunks, so that ranks work on
// several at a time. It takes as many messages, one after the other, as there are ranks.
#include <algorithm>
#include <cstring>

#include "collectives/nodes/algorithms.hpp"
#include "collectives/nodes/arena_block.hpp"
#include "collectives/nodes/chunk_exchange.hpp"
#include "collectives/through_mpi.hpp"

namespace ropewalk::collectives::nodes {
namespace {

// A message of this length takes long enough that its own cost does not count.
constexpr std::size_t chunk_bytes = std::size_t{128} << 10;

class Scan {
 public:
  Scan(Nodes& nodes, const Operation& operation, bool exclusive, std::size_t most_elements)
      : nodes_(nodes),
        operation_(operation),
        exclusive_(exclusive),
        rank_(nodes.layout().rank),
        last_(rank_ + 1 == nodes.layout().size()),
        tag_(nodes.messages().movement_tag()),
        below_(most_elements * operation.element_bytes),
        sum_(most_elements * operation.element_bytes) {}

  // The ranks make the same call, or all learn that they do not.
  void meet_neighbours(const Header& own) {
    if (!last_) nodes_.messages().send(&own, sizeof own, rank_ + 1, tag_);
    if (rank_ == 0) return;
    Header other{};
    nodes_.messages().receive(&other, sizeof other, rank_ - 1, tag_);
    check_header(own, other, rank_ - 1);
  }

  void chunk(const std::byte* own, std::byte* result, std::size_t count) {
    const std::size_t bytes = count * operation_.element_bytes;
    if (rank_ == 0) {
      if (!last_) nodes_.messages().send(own, bytes, 1, tag_);
      if (!exclusive_ && own != result) std::memcpy(result, own, bytes);
      return;
    }
    nodes_.messages().receive(below_.data(), bytes, rank_ - 1, tag_);
    void* const sum = exclusive_ ? sum_.data() : result;
    if (!exclusive_ || !last_) combine_two(operation_, sum, below_.data(), own, count);
    if (!last_) nodes_.messages().send(sum, bytes, rank_ + 1, tag_);
    if (exclusive_) std::memcpy(result, below_.data(), bytes);
  }

 private:
  Nodes& nodes_;
  const Operation& operation_;
  bool exclusive_;
  int rank_;
  bool last_;
  int tag_;
  ArenaBlock below_;  // what all ranks below this one have combined
  ArenaBlock sum_;
};

}  // namespace

void scan(Nodes& nodes, const void* send, void* receive, std::size_t count,
          const Operation& operation, bool exclusive) {
  const tuning::Shape shape = nodes.shape();
  if (operation.by_mpi || !(shape.without_mpi || shape.serves_all_sizes)) {
    ThroughMpi(nodes).scan(send, receive, count, operation, exclusive);
    return;
  }
  nodes.path = Path::nodes;
  nodes.run([&] {
    const std::size_t most = std::max<std::size_t>(1, chunk_bytes / operation.element_bytes);
    Scan scan(nodes, operation, exclusive, std::min(most, count));
    scan.meet_neighbours(header_of(exclusive ? Kind::exscan : Kind::scan, count, operation.code()));
    for (std::size_t first = 0; first < count; first += most) {
      const std::size_t offset = first * operation.element_bytes;
      scan.chunk(static_cast<const std::byte*>(send) + offset,
                 static_cast<std::byte*>(receive) + offset, std::min(most, count - first));
    }
  });
}

}  // namespace ropewalk::collectives::nodes
