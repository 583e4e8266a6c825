#include "ropewalk/subarray_exchange.hpp"

#include <optional>
#include <string>
#include <utility>

#include "irregular/rank_places.hpp"
#include "irregular/subarrays.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/collectively.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/window.hpp"

namespace ropewalk {

using irregular::Description;
using irregular::RankPlaces;

namespace {

// A part that this rank copies into the array of a rank of its node, or of its own.
struct NearSend {
  int place;  // in the window
  Subarray from;
  Subarray to;  // as that rank has told
};

// The messages with a rank whose memory is not mapped here.
struct FarPair {
  Subarray sent;
  Subarray received;
  Subarray sent_packed;
  Subarray received_packed;
  Buffer<std::byte> outgoing;
  Buffer<std::byte> incoming;
  PersistentMessage send;
  PersistentMessage receive;
};

}  // namespace

// The window has two signals for each rank of the node: with the first that rank says that this one
// may write into its array, since it has come to the exchange, with the second that it has written
// into this one's. Both count exchanges.
struct SubarrayExchange::State {
  void connect(RankPlaces& ranks, const ArrayParts& sent, const ArrayParts& received,
               const std::vector<Description>& told);
  void add_far(int peer, const Subarray& sent, const Subarray& received);
  void start_far(const void* array);
  void finish_far();
  void write_near(const void* array);
  std::byte* data() const noexcept { return window ? window->data() : own.data(); }
  int written(int place) const noexcept { return window->size() + place; }

  std::size_t element_bytes = 0;
  std::size_t bytes = 0;
  std::size_t near_bytes = 0;
  std::size_t far_bytes = 0;
  std::optional<SplitCommunicator> node;
  std::optional<Window> window;    // of the ranks of this node; none where they map nothing
  std::optional<Channel> channel;  // none where no rank needs it
  Buffer<std::byte> own;           // the array, where there is no window
  Subarray from_self;
  Subarray to_self;
  std::vector<NearSend> sends;
  std::vector<int> senders;  // their places in the window
  std::vector<FarPair> far;
  std::uint64_t exchange = 0;  // number of the last one that was started
  bool closed = false;
};

namespace {

std::vector<Description> descriptions(RankPlaces& ranks, std::size_t element_bytes,
                                      const ArrayParts& sent, const ArrayParts& received) {
  std::vector<Description> theirs(ranks.nodes.size());
  collectively(ranks.all, [&] {
    irregular::check_parts("sent", sent, theirs.size(), element_bytes);
    irregular::check_parts("received", received, theirs.size(), element_bytes);
    std::vector<Description> own;
    for (std::size_t peer = 0; peer < theirs.size(); ++peer) {
      own.push_back(irregular::describe(element_bytes, sent.parts[peer], received.parts[peer]));
    }
    meet(ranks.all);
    ranks.all.alltoall(own.data(), theirs.data(), sizeof(Description));
    irregular::check_descriptions(own, theirs, ranks.all.rank());
  });
  return theirs;
}

std::optional<Window> make_window(RankPlaces& ranks, Communicator node, std::size_t bytes) {
  std::optional<Window> window;
  collectively(ranks.all, [&] {
    try {
      if (ranks.here > 1) window.emplace(node, bytes, WindowOptions{2 * ranks.here});
    } catch (const Error& error) {
      // On all ranks of the node: they cannot map each other's memory.
      if (error.code() != ErrorCode::unsupported) throw;
    }
  });
  return window;
}

bool is_any(RankPlaces& ranks, bool here) {
  std::int64_t any = here ? 1 : 0;
  ranks.all.allreduce(&any, &any, 1, ElementType::int64, ReductionOp::max);
  return any != 0;
}

}  // namespace

void SubarrayExchange::State::add_far(int peer, const Subarray& sent, const Subarray& received) {
  FarPair pair;
  pair.sent = sent;
  pair.received = received;
  pair.sent_packed = irregular::packed(sent, element_bytes);
  pair.received_packed = irregular::packed(received, element_bytes);
  pair.outgoing = Buffer<std::byte>(irregular::bytes_of(sent, element_bytes));
  pair.incoming = Buffer<std::byte>(irregular::bytes_of(received, element_bytes));
  pair.send = channel->prepare_send(pair.outgoing.data(), pair.outgoing.bytes(), peer);
  pair.receive = channel->prepare_receive(pair.incoming.data(), pair.incoming.bytes(), peer);
  far_bytes += pair.outgoing.bytes();
  far.push_back(std::move(pair));
}

// Each rank begins with the one behind it, so that not all write into the same array at once.
void SubarrayExchange::State::connect(RankPlaces& ranks, const ArrayParts& sent,
                                      const ArrayParts& received,
                                      const std::vector<Description>& told) {
  const int size = ranks.all.size();
  for (int step = 1; step < size; ++step) {
    const int peer = (ranks.all.rank() + step) % size;
    const auto at = static_cast<std::size_t>(peer);
    const std::size_t outgoing = irregular::bytes_of(sent.parts[at], element_bytes);
    const std::size_t incoming = irregular::bytes_of(received.parts[at], element_bytes);
    if (outgoing == 0 && incoming == 0) continue;
    if (!window || !ranks.is_here(peer)) {
      add_far(peer, sent.parts[at], received.parts[at]);
      continue;
    }
    const int place = ranks.place_of(peer);
    near_bytes += outgoing;
    if (outgoing != 0) {
      sends.push_back({place, sent.parts[at], irregular::received_there(told[at])});
    }
    if (incoming != 0) senders.push_back(place);
  }
}

SubarrayExchange::SubarrayExchange(Communicator communicator, std::size_t element_bytes,
                                   const ArrayParts& sent, const ArrayParts& received)
    : state_(std::make_unique<State>()) {
  RankPlaces ranks(communicator);
  State& state = *state_;
  const std::vector<Description> told = descriptions(ranks, element_bytes, sent, received);
  const auto self = static_cast<std::size_t>(ranks.all.rank());
  state.element_bytes = element_bytes;
  state.bytes = received.bytes;
  state.from_self = sent.parts[self];
  state.to_self = received.parts[self];
  state.node.emplace(communicator, ranks.node_of(ranks.all.rank()), ranks.all.rank());
  state.window = make_window(ranks, state.node->communicator(), received.bytes);
  const bool reaches_all = state.window && ranks.here == ranks.all.size();
  if (is_any(ranks, !reaches_all && ranks.all.size() > 1)) state.channel.emplace(communicator);
  collectively(ranks.all, [&] {
    if (!state.window) state.own = Buffer<std::byte>(received.bytes);
    state.connect(ranks, sent, received, told);
  });
}

SubarrayExchange::~SubarrayExchange() = default;
SubarrayExchange::SubarrayExchange(SubarrayExchange&&) noexcept = default;
SubarrayExchange& SubarrayExchange::operator=(SubarrayExchange&&) noexcept = default;

std::byte* SubarrayExchange::data() const noexcept { return state_->data(); }
std::size_t SubarrayExchange::bytes() const noexcept { return state_->bytes; }
std::size_t SubarrayExchange::near_bytes() const noexcept { return state_->near_bytes; }
std::size_t SubarrayExchange::far_bytes() const noexcept { return state_->far_bytes; }

void SubarrayExchange::State::start_far(const void* array) {
  for (FarPair& pair : far) pair.receive.start();
  for (FarPair& pair : far) {
    irregular::copy_part(array, pair.sent, pair.outgoing.data(), pair.sent_packed, element_bytes);
    pair.send.start();
  }
}

void SubarrayExchange::State::finish_far() {
  for (FarPair& pair : far) {
    pair.receive.wait();
    irregular::copy_part(pair.incoming.data(), pair.received_packed, data(), pair.received,
                         element_bytes);
  }
  for (FarPair& pair : far) pair.send.wait();
}

void SubarrayExchange::State::write_near(const void* array) {
  for (const NearSend& one : sends) {
    window->wait_signal(exchange, one.place);
    irregular::copy_part(array, one.from, window->data(one.place), one.to, element_bytes);
    window->signal(one.place, written(window->rank()));
  }
}

void SubarrayExchange::exchange(const void* array) {
  State& state = *state_;
  if (state.closed) {
    throw Error(ErrorCode::argument, "subarray exchange: closed, expected an open one");
  }
  const bool sends_any = state.near_bytes + state.far_bytes +
                             irregular::bytes_of(state.from_self, state.element_bytes) >
                         0;
  if (array == nullptr && sends_any) {
    throw Error(ErrorCode::argument, "array: null; pass this rank's array that is sent");
  }
  ++state.exchange;
  for (const int place : state.senders) state.window->signal(place, state.window->rank());
  state.start_far(array);
  irregular::copy_part(array, state.from_self, state.data(), state.to_self, state.element_bytes);
  state.write_near(array);
  state.finish_far();
  for (const int place : state.senders) {
    state.window->wait_signal(state.exchange, state.written(place));
  }
}

void SubarrayExchange::close() {
  state_->closed = true;
  if (state_->window) state_->window->close();
  state_->far.clear();
  state_->channel.reset();
  state_->node.reset();
}

}  // namespace ropewalk
