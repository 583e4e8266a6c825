// Recursive halving and doubling (Rabenseifner 2004): as many bytes as the ring, in 2 log2 n
// messages instead of 2 (n - 1), for chunks whose messages would be short.
//
// In step k partners exchange halves of what they hold and combine them, the lower node's on the
// left; then they do the same backwards, without combining. Where n is no power of two, the first
// nodes begin in pairs: the odd one hands its part to the even one, and gets the result at the end.
//
// Blocking: it comes back with the result.
#include <bit>
#include <cstring>
#include <vector>

#include "collectives/nodes/arena_block.hpp"
#include "collectives/nodes/chunk_exchange.hpp"

namespace ropewalk::collectives::nodes {
namespace {

class Halving final : public ChunkExchange {
 public:
  explicit Halving(const ExchangeSetup& setup)
      : nodes_(setup.nodes),
        operation_(setup.operation),
        landing_(setup.most_elements * setup.operation.element_bytes) {}

  void start(const Route& route, int tag, const std::byte* input, std::byte* data,
             std::size_t count) override {
    if (input != data) std::memcpy(data, input, count * operation_.element_bytes);
    route_ = route;
    tag_ = tag;
    data_ = data;
    const Range whole{0, count};
    const auto all = static_cast<unsigned>(route.leaders.size());
    power_ = std::bit_floor(all);
    pairs_ = all - power_;
    const auto node = static_cast<unsigned>(route.node);
    const bool paired = node < 2 * pairs_;
    if (paired && node % 2 != 0) {
      const int partner = leader(node - 1);
      move(whole, partner, {}, partner);
      move({}, partner, whole, partner);
      return;
    }
    if (paired) {
      land(whole, leader(node + 1));
      combine_two(operation_, data_, data_, landing_.data(), count);
    }
    halve_and_double(paired ? node / 2 : node - pairs_, whole);
    if (paired) move(whole, leader(node + 1), {}, 0);
  }

  bool advance() override { return true; }

 private:
  int leader(unsigned node) const { return route_.leaders[node]; }
  int partner_rank(unsigned number) const {
    return leader(number < pairs_ ? 2 * number : number + pairs_);
  }
  std::byte* place(const Range& part) const {
    return data_ + part.begin * operation_.element_bytes;
  }
  std::size_t bytes(const Range& part) const { return part.length() * operation_.element_bytes; }

  void halve_and_double(unsigned own, Range held) {
    std::vector<Range> before;
    for (unsigned step = power_ / 2; step > 0; step /= 2) {
      before.push_back(held);
      const bool lower = (own & step) == 0;
      const std::size_t middle = held.begin + held.length() / 2;
      const Range low{held.begin, middle};
      const Range high{middle, held.end};
      const Range kept = lower ? low : high;
      const Range given = lower ? high : low;
      const int partner = partner_rank(own ^ step);
      exchange(place(given), bytes(given), landing_.data(), bytes(kept), partner);
      combine_two(operation_, place(kept), lower ? place(kept) : landing_.data(),
                  lower ? landing_.data() : place(kept), kept.length());
      held = kept;
    }
    for (unsigned step = 1; step < power_; step *= 2) {
      const Range wanted = before.back();
      before.pop_back();
      const Range other = held.begin == wanted.begin ? Range{held.end, wanted.end}
                                                     : Range{wanted.begin, held.begin};
      exchange(place(held), bytes(held), place(other), bytes(other), partner_rank(own ^ step));
      held = wanted;
    }
  }

  void exchange(std::byte* sent, std::size_t sent_bytes, std::byte* received,
                std::size_t received_bytes, int partner) {
    Requests requests;
    requests.receive(received, received_bytes, partner, tag_, route_.comm);
    requests.sends.push_back(mpi::isend(sent, sent_bytes, partner, tag_, route_.comm));
    nodes_.waits().wait(requests);
  }
  void land(const Range& part, int from) {
    Requests requests;
    requests.receive(landing_.data(), bytes(part), from, tag_, route_.comm);
    nodes_.waits().wait(requests);
  }
  // Sends and receives what is not empty.
  void move(const Range& sent, int to, const Range& received, int from) {
    Requests requests;
    if (received.length() > 0) {
      requests.receive(place(received), bytes(received), from, tag_, route_.comm);
    }
    if (sent.length() > 0) {
      requests.sends.push_back(mpi::isend(place(sent), bytes(sent), to, tag_, route_.comm));
    }
    nodes_.waits().wait(requests);
  }

  Nodes& nodes_;
  const Operation& operation_;
  ArenaBlock landing_;
  Route route_;
  int tag_ = 0;
  unsigned power_ = 1;
  unsigned pairs_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace

std::unique_ptr<ChunkExchange> make_halving(const ExchangeSetup& setup) {
  return std::make_unique<Halving>(setup);
}

}  // namespace ropewalk::collectives::nodes
