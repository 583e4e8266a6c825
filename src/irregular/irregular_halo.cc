#include "ropewalk/irregular_halo.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "irregular/checks.hpp"
#include "irregular/links.hpp"
#include "irregular/rank_places.hpp"
#include "ropewalk/collectively.hpp"

namespace ropewalk {

using irregular::FarLink;
using irregular::IndexList;
using irregular::Lists;
using irregular::NearLink;
using irregular::NeighborLink;
using irregular::OwnLink;
using irregular::Promise;
using irregular::RankPlaces;
using irregular::Way;

struct IrregularHalo::State {
  void begin(std::byte* of, Way along);
  bool test();
  void wait();
  void combine(ElementType, ReductionOp);

  std::size_t elements = 0;
  std::size_t element_bytes = 0;
  std::size_t near_bytes = 0;
  std::size_t far_bytes = 0;
  std::optional<SplitCommunicator> node;
  std::optional<Window> window;    // of the ranks of this node; none where they map nothing
  std::optional<Channel> channel;  // none where no rank needs it
  std::vector<std::unique_ptr<NeighborLink>> links;  // as the neighbors were listed
  std::vector<NeighborLink*> in_order;               // those to other nodes first
  std::vector<std::byte> scratch;

  bool under_way = false;
  std::byte* array = nullptr;
  Way way = Way::to_ghosts;
  std::uint64_t exchange = 0;  // number of the last one that was started
  unsigned tests = 0;          // that found it under way
  std::vector<NeighborLink*>
      left;  // of the exchange that is under way, whose elements have not come
};

namespace {

std::vector<Promise> promises_of(const std::vector<Neighbor>& neighbors, int ranks) {
  std::vector<Promise> made(static_cast<std::size_t>(ranks));
  for (const Neighbor& one : neighbors) {
    made[static_cast<std::size_t>(one.rank)] = {1, static_cast<std::int64_t>(one.send.size()),
                                                static_cast<std::int64_t>(one.receive.size())};
  }
  return made;
}

void check(RankPlaces& ranks, const std::vector<Neighbor>& neighbors, std::size_t elements,
           std::size_t element_bytes) {
  collectively(ranks.all, [&] {
    irregular::check_lists(neighbors, ranks.all.size(), elements, element_bytes);
    const std::vector<Promise> own = promises_of(neighbors, ranks.all.size());
    std::vector<Promise> theirs(own.size());
    std::int64_t sizes[] = {static_cast<std::int64_t>(element_bytes),
                            -static_cast<std::int64_t>(element_bytes)};
    meet(ranks.all);
    ranks.all.alltoall(own.data(), theirs.data(), sizeof(Promise));
    ranks.all.allreduce(sizes, sizes, 2, ElementType::int64, ReductionOp::max);
    irregular::check_promises(own, theirs, ranks.all.rank());
    if (sizes[0] != -sizes[1]) {
      throw Error(ErrorCode::argument, "element_bytes: from " + std::to_string(-sizes[1]) + " to " +
                                           std::to_string(sizes[0]) +
                                           " over the ranks, expected the same on all");
    }
  });
}

Lists lists_of(const Neighbor& one, std::size_t element_bytes) {
  return {IndexList(one.send, element_bytes), IndexList(one.receive, element_bytes)};
}

// Makes the window with two inboxes for each neighbor on this node. Returns where the first one of
// each rank lies in it, or -1 for a rank that has none.
std::vector<std::int64_t> make_window(RankPlaces& ranks, const std::vector<Neighbor>& neighbors,
                                      std::size_t element_bytes, std::optional<Window>& window,
                                      Communicator node) {
  std::vector<std::int64_t> places(ranks.nodes.size(), -1);
  std::size_t end = 0;
  for (const Neighbor& one : neighbors) {
    if (!ranks.is_here(one.rank) || one.rank == ranks.all.rank()) continue;
    const std::size_t longest = std::max(one.send.size(), one.receive.size()) * element_bytes;
    places[static_cast<std::size_t>(one.rank)] = static_cast<std::int64_t>(end);
    end += 2 * NearLink::inbox_bytes(longest);
  }
  try {
    if (ranks.here > 1) window.emplace(node, end, WindowOptions{ranks.here});
  } catch (const Error& error) {
    // On all ranks of the node: they cannot map each other's memory.
    if (error.code() != ErrorCode::unsupported) throw;
  }
  if (!window) std::fill(places.begin(), places.end(), -1);
  return places;
}

}  // namespace

IrregularHalo::IrregularHalo(Communicator communicator, const std::vector<Neighbor>& neighbors,
                             std::size_t elements, std::size_t element_bytes)
    : state_(std::make_unique<State>()) {
  RankPlaces ranks(communicator);
  State& state = *state_;
  check(ranks, neighbors, elements, element_bytes);
  state.elements = elements;
  state.element_bytes = element_bytes;
  state.node.emplace(communicator, ranks.node_of(ranks.all.rank()), ranks.all.rank());
  std::vector<std::int64_t> here;
  collectively(ranks.all, [&] {
    here = make_window(ranks, neighbors, element_bytes, state.window, state.node->communicator());
  });
  std::vector<std::int64_t> there(here.size());
  ranks.all.alltoall(here.data(), there.data(), sizeof(std::int64_t));
  const auto is_far = [&](const Neighbor& one) {
    return one.rank != ranks.all.rank() && here[static_cast<std::size_t>(one.rank)] < 0;
  };
  std::int64_t far = std::any_of(neighbors.begin(), neighbors.end(), is_far) ? 1 : 0;
  ranks.all.allreduce(&far, &far, 1, ElementType::int64, ReductionOp::max);
  if (far != 0) state.channel.emplace(communicator);
  collectively(ranks.all, [&] {
    for (const Neighbor& one : neighbors) {
      Lists lists = lists_of(one, element_bytes);
      const auto peer = static_cast<std::size_t>(one.rank);
      if (one.rank == ranks.all.rank()) {
        state.links.push_back(std::make_unique<OwnLink>(std::move(lists)));
      } else if (is_far(one)) {
        state.far_bytes += lists.send.bytes();
        state.links.push_back(
            std::make_unique<FarLink>(std::move(lists), *state.channel, one.rank));
        state.in_order.push_back(state.links.back().get());
      } else {
        state.near_bytes += lists.send.bytes();
        const NearLink::Place place{ranks.place_of(one.rank), static_cast<std::size_t>(there[peer]),
                                    static_cast<std::size_t>(here[peer])};
        state.links.push_back(std::make_unique<NearLink>(std::move(lists), *state.window, place));
      }
    }
    for (const auto& link : state.links) {
      const auto found = std::find(state.in_order.begin(), state.in_order.end(), link.get());
      if (found == state.in_order.end()) state.in_order.push_back(link.get());
      state.scratch.resize(std::max(state.scratch.size(), link->lists().most_bytes()));
    }
    state.left.reserve(state.links.size());
  });
}

IrregularHalo::~IrregularHalo() = default;
IrregularHalo::IrregularHalo(IrregularHalo&&) noexcept = default;
IrregularHalo& IrregularHalo::operator=(IrregularHalo&&) noexcept = default;

std::size_t IrregularHalo::elements() const noexcept { return state_->elements; }
std::size_t IrregularHalo::element_bytes() const noexcept { return state_->element_bytes; }
std::size_t IrregularHalo::near_bytes() const noexcept { return state_->near_bytes; }
std::size_t IrregularHalo::far_bytes() const noexcept { return state_->far_bytes; }

void IrregularHalo::State::begin(std::byte* of, Way along) {
  if (under_way) {
    throw Error(ErrorCode::argument,
                "irregular halo: started while an exchange is under way; wait for it first");
  }
  if (of == nullptr && elements != 0) {
    throw Error(ErrorCode::argument, "array: null for " + std::to_string(elements) +
                                         " elements; pass this rank's array");
  }
  under_way = true;
  array = of;
  way = along;
  ++exchange;
  left = in_order;
  for (NeighborLink* link : left) link->start(array, way, exchange);
}

bool IrregularHalo::State::test() {
  std::erase_if(left, [&](NeighborLink* link) {
    if (!link->test(way, exchange)) return false;
    link->lists().incoming(way).scatter(link->arrived(exchange), array);
    return true;
  });
  under_way = !left.empty();
  // A program that tests instead of waiting progresses MPI and notices dead ranks as well.
  constexpr unsigned tests_per_look = 64;
  if (under_way && window && ++tests % tests_per_look == 0) window->look_around();
  return !under_way;
}

void IrregularHalo::State::wait() {
  if (!under_way) return;
  for (; !left.empty(); left.erase(left.begin())) {
    NeighborLink& link = *left.front();
    link.wait(way, exchange);
    link.lists().incoming(way).scatter(link.arrived(exchange), array);
  }
  under_way = false;
}

void IrregularHalo::State::combine(ElementType type, ReductionOp op) {
  for (NeighborLink* link : left) link->wait(way, exchange);
  left.clear();
  for (const auto& link : links) {
    link->lists().incoming(way).combine(array, link->arrived(exchange), scratch.data(), type, op);
  }
  under_way = false;
}

void IrregularHalo::start(void* array) {
  state_->begin(static_cast<std::byte*>(array), Way::to_ghosts);
}

bool IrregularHalo::test() { return !state_->under_way || state_->test(); }
void IrregularHalo::wait() { state_->wait(); }

void IrregularHalo::exchange(void* array) {
  start(array);
  wait();
}

void IrregularHalo::combine(void* array, ElementType type, ReductionOp op) {
  irregular::check_operation(state_->element_bytes, type, op);
  state_->begin(static_cast<std::byte*>(array), Way::to_owners);
  state_->combine(type, op);
}

}  // namespace ropewalk
