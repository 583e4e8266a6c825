// Chain: a chunk goes from node to node, each adding its part, and ends at the root's node. Every
// node sends and receives each byte once; the chunks follow each other, so all links are busy.
//
// Nodes are combined in their order, beginning behind the root's: (r + 1 op r + 2) ... op r.
#include "collectives/nodes/arena_block.hpp"
#include "collectives/nodes/chunk_exchange.hpp"

namespace ropewalk::collectives::nodes {
namespace {

class ChunkChain final : public ChunkExchange {
 public:
  explicit ChunkChain(const ExchangeSetup& setup)
      : arithmetic_(setup),
        operation_(setup.operation),
        landing_(setup.most_elements * setup.operation.element_bytes) {}

  void start(const Route& route, int tag, const std::byte* input, std::byte* data,
             std::size_t count) override {
    const int nodes = static_cast<int>(route.leaders.size());
    route_ = route;
    tag_ = tag;
    input_ = input;
    data_ = data;
    count_ = count;
    waiting_ = combining_ = false;
    const int distance = (route.node - route.root_node + nodes) % nodes;
    first_ = distance == 1;
    last_ = distance == 0;
    requests_.receives.clear();
    requests_.sends.clear();
    if (first_) return pass_on(input);
    waiting_ = true;
    const int from = route.leaders[static_cast<std::size_t>((route.node + nodes - 1) % nodes)];
    requests_.receive(landing_.data(), count * operation_.element_bytes, from, tag, route.comm);
  }

  bool advance() override {
    if (waiting_) {
      if (!mpi::test(requests_.receives.front())) return false;
      arithmetic_.start({&operation_, data_, landing_.data(), input_, count_});
      waiting_ = false;
      combining_ = true;
    }
    if (combining_) {
      if (!arithmetic_.finished()) return false;
      combining_ = false;
      if (!last_) pass_on(data_);
    }
    return mpi::test_each(requests_.sends);
  }

 private:
  void pass_on(const std::byte* from) {
    const auto nodes = static_cast<int>(route_.leaders.size());
    const int to = route_.leaders[static_cast<std::size_t>((route_.node + 1) % nodes)];
    requests_.sends.push_back(
        mpi::isend(from, count_ * operation_.element_bytes, to, tag_, route_.comm));
  }

  ChunkArithmetic arithmetic_;
  const Operation& operation_;
  ArenaBlock landing_;
  Requests requests_;
  Route route_;
  int tag_ = 0;
  bool first_ = false;
  bool last_ = false;
  bool waiting_ = false;    // for the message of the node before
  bool combining_ = false;  // it
  const std::byte* input_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace

std::unique_ptr<ChunkExchange> make_chain(const ExchangeSetup& setup) {
  return std::make_unique<ChunkChain>(setup);
}

}  // namespace ropewalk::collectives::nodes
