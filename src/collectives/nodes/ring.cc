// Ring: a reduce-scatter and an allgather, n - 1 messages each of one nth of the chunk, to the next
// node only. 2 (n - 1) / n of the bytes leave each node, the least there is (Patarasuk and Yuan
// 2009).
//
// Block b is combined from node b on, round the nodes: ((b op b + 1) op b + 2) ..., by one node at
// a time, so all nodes get the same bits. The last of them divides what is to be an average. A node
// forwards a block as soon as it has it, in both phases: no step waits for a whole round. All
// receives of the first phase are posted at the start; those of the second when the block they land
// on has left.
#include <vector>

#include "collectives/nodes/arena_block.hpp"
#include "collectives/nodes/chunk_exchange.hpp"

namespace ropewalk::collectives::nodes {
namespace {

class Ring final : public ChunkExchange {
 public:
  explicit Ring(const ExchangeSetup& setup)
      : arithmetic_(setup),
        average_(setup.operation),
        operation_(setup.operation.partial()),
        nodes_(setup.nodes.layout().count()),
        block_bytes_((setup.most_elements / static_cast<std::size_t>(nodes_) + 1) *
                     operation_.element_bytes),
        received_blocks_(block_bytes_ * static_cast<std::size_t>(nodes_ - 1)) {}

  void start(const Route& route, int tag, const std::byte* input, std::byte* data,
             std::size_t count) override {
    node_ = route.node;
    comm_ = route.comm;
    tag_ = tag;
    input_ = input;
    data_ = data;
    count_ = count;
    combining_ = false;
    next_ = route.leaders[static_cast<std::size_t>((node_ + 1) % nodes_)];
    previous_ = route.leaders[static_cast<std::size_t>((node_ + nodes_ - 1) % nodes_)];
    combined_ = gathered_ = posted_ = 0;
    requests_.receives.clear();
    requests_.sends.clear();
    for (int step = 0; step < nodes_ - 1; ++step) {
      receive(landing(step), block(node_ - step - 1).length());
    }
    send(own(block(node_)), node_);
  }

  bool advance() override {
    while (combined_ < nodes_ - 1 && is_combined()) {
      ++combined_;
      // The last of these has its result, and begins the second phase.
      pass_on(node_ - combined_);
    }
    // Block node - step left as send number `step`: what comes for it may land there.
    while (posted_ < nodes_ - 1 && posted_ < static_cast<int>(requests_.sends.size()) &&
           mpi::test(requests_.sends[static_cast<std::size_t>(posted_)])) {
      const Range part = block(node_ - posted_);
      receive(place(part), part.length());
      ++posted_;
    }
    // A message of the second phase may have come since the last of the first was asked for: it
    // must not be passed on before this node's own result, which the next node expects first.
    while (combined_ == nodes_ - 1 && gathered_ < posted_ && arrived(nodes_ - 1 + gathered_)) {
      const int landed = node_ - gathered_;
      if (++gathered_ < nodes_ - 1) pass_on(landed);
    }
    return gathered_ == nodes_ - 1 && mpi::test_each(requests_.sends);
  }

 private:
  Range block(int number) const {
    return slice(count_, (number % nodes_ + nodes_) % nodes_, nodes_, 1);
  }
  std::byte* place(const Range& part) const {
    return data_ + part.begin * operation_.element_bytes;
  }
  const std::byte* own(const Range& part) const {
    return input_ + part.begin * operation_.element_bytes;
  }
  std::byte* landing(int step) const {
    return received_blocks_.data() + static_cast<std::size_t>(step) * block_bytes_;
  }
  void receive(std::byte* to, std::size_t count) {
    requests_.receive(to, count * operation_.element_bytes, previous_, tag_, comm_);
  }
  void send(const std::byte* from, int number) {
    const std::size_t bytes = block(number).length() * operation_.element_bytes;
    requests_.sends.push_back(mpi::isend(from, bytes, next_, tag_, comm_));
  }
  void pass_on(int number) { send(place(block(number)), number); }
  // Whether the next block of the first phase has come and has this node's part in it.
  bool is_combined() {
    if (!combining_) {
      if (!arrived(combined_)) return false;
      const Range part = block(node_ - combined_ - 1);
      const bool last = combined_ == nodes_ - 2;
      arithmetic_.start({last ? &average_ : &operation_, place(part), landing(combined_), own(part),
                         part.length()});
      combining_ = true;
    }
    if (!arithmetic_.finished()) return false;
    combining_ = false;
    return true;
  }
  bool arrived(int receive_number) {
    return mpi::test(requests_.receives[static_cast<std::size_t>(receive_number)]);
  }

  ChunkArithmetic arithmetic_;
  const Operation& average_;  // the operation as asked for
  Operation operation_;       // the same, not divided
  int nodes_;
  std::size_t block_bytes_;
  ArenaBlock received_blocks_;
  Requests requests_;
  mpi::Comm comm_;
  int tag_ = 0;
  int node_ = 0;
  int next_ = 0;
  int previous_ = 0;
  int combined_ = 0;        // blocks of the first phase
  int posted_ = 0;          // receives of the second
  int gathered_ = 0;        // blocks of the second phase
  bool combining_ = false;  // the block behind those
  const std::byte* input_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace

std::unique_ptr<ChunkExchange> make_ring(const ExchangeSetup& setup) {
  return std::make_unique<Ring>(setup);
}

}  // namespace ropewalk::collectives::nodes
