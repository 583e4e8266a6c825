#include "ropewalk/window.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernels.hpp"
#include "messages/atomic_elements.hpp"
#include "messages/far_window.hpp"
#include "messages/near_ranks.hpp"
#include "messages/window_checks.hpp"
#include "messages/window_memory.hpp"
#include "mpi/collectively.hpp"
#include "mpi/scoped_comm.hpp"
#include "node/machine_share.hpp"
#include "node/rank_nodes.hpp"
#include "ropewalk/detail/unwinding.hpp"
#include "ropewalk/memory.hpp"
#include "tuning/limits.hpp"

namespace ropewalk {

using messages::OneSidedRequest;
using messages::require_buffer;
using messages::require_element;
using messages::require_index;
using messages::require_range;
using messages::require_rank;
using messages::WindowSignal;

namespace {

constexpr int most_signals = 1 << 16;

// Says where a rank's part of the window lies in its arena.
struct Part {
  std::uint64_t memory;
  std::uint64_t bytes;
  std::uint64_t signals;
};

// A rank's part as this rank reaches it.
struct Reached {
  bool is_near() const noexcept { return memory.data != nullptr; }

  messages::WindowMemory memory;  // null on another node
  std::size_t bytes = 0;
};

}  // namespace

struct Window::State {
  ~State() {
    close();
    if (near == nullptr) return;
    near->keep(own.data);
    near->keep(own.signals);
    near->end();
  }
  void close() noexcept {
    if (far == nullptr) return;
    far->end(bool{unwinding});
    near->team().waits().watch_with(nullptr);
    far.reset();
  }
  messages::FarWindow& others() const {
    if (far != nullptr) return *far;
    throw Error(ErrorCode::argument,
                "window: closed, expected an open one; close it after its last use");
  }
  const Reached& part(int rank) const { return parts[static_cast<std::size_t>(rank)]; }
  std::byte* at(int rank, std::size_t offset) const { return part(rank).memory.data + offset; }
  kernels::Stores stores(std::size_t bytes) const noexcept {
    return bytes >= streaming_bytes ? kernels::Stores::streaming : kernels::Stores::temporal;
  }
  // What was put on other nodes is there, but for what was put there: that comes in order.
  void finish_far(int except = -1) const {
    if (far != nullptr) far->flush(except);
  }

  int own_rank = 0;
  std::unique_ptr<messages::NearRanks> near;  // the ranks of this node
  messages::WindowMemory own;
  int signal_count = 0;
  std::size_t streaming_bytes = 0;
  std::vector<Reached> parts;                // by rank
  std::unique_ptr<messages::FarWindow> far;  // null: all ranks are near
  detail::Unwinding unwinding;
};

namespace {

// Those of the node in the order of the communicator.
std::vector<int> ranks_beside(const std::vector<int>& nodes, int rank) {
  std::vector<int> beside;
  for (int other = 0; other < static_cast<int>(nodes.size()); ++other) {
    if (nodes[static_cast<std::size_t>(other)] == nodes[static_cast<std::size_t>(rank)]) {
      beside.push_back(other);
    }
  }
  return beside;
}

// Collective over `comm`; `node` is its part on this node.
std::unique_ptr<messages::NearRanks> near_ranks_of(mpi::Comm node, std::vector<int> ranks,
                                                   int all) {
  std::string reason;
  std::unique_ptr<messages::NearRanks> near;
  mpi::collectively(
      node, [&] { near = messages::NearRanks::create(node, std::move(ranks), all, {}, reason); });
  if (near == nullptr) {
    throw Error(ErrorCode::unsupported, "window: " + reason + "; use MPI's windows");
  }
  return near;
}

void* allocate_zeroed(std::size_t bytes) {
  void* memory = Arena::process().allocate(bytes, 4096);
  std::memset(memory, 0, bytes);
  return memory;
}

messages::WindowMemory make_memory(std::size_t bytes, int signals) {
  const auto lines = static_cast<std::size_t>(std::max(signals, 1));
  messages::WindowMemory made;
  made.data = static_cast<std::byte*>(allocate_zeroed(std::max<std::size_t>(bytes, 1)));
  try {
    made.signals = static_cast<WindowSignal*>(allocate_zeroed(lines * sizeof(WindowSignal)));
  } catch (...) {
    Arena::process().deallocate(made.data);
    throw;
  }
  return made;
}

// Collective. Tells all ranks where the parts are; those of other nodes are not reached.
std::vector<Reached> exchange_parts(mpi::Comm comm, messages::NearRanks& near,
                                    const messages::WindowMemory& own, std::size_t bytes) {
  const Arena& arena = Arena::process();
  const Part mine{arena.offset(own.data), bytes, arena.offset(own.signals)};
  std::vector<Part> all(static_cast<std::size_t>(mpi::size(comm)));
  mpi::all_gather(&mine, all.data(), sizeof mine, comm);
  std::vector<Reached> parts(all.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    parts[rank].bytes = all[rank].bytes;
    const int place = near.place_of(static_cast<int>(rank));
    if (place < 0) continue;
    std::byte* base = near.base(place);
    parts[rank].memory = {base + all[rank].memory,
                          reinterpret_cast<WindowSignal*>(base + all[rank].signals)};
  }
  return parts;
}

void check_options(mpi::Comm comm, const WindowOptions& options) {
  if (options.signals < 0 || options.signals > most_signals) {
    throw Error(ErrorCode::argument, "signals: " + std::to_string(options.signals) +
                                         "; pass 0 to " + std::to_string(most_signals));
  }
  const mpi::Fact signals{"signals", options.signals};
  mpi::same_on_all(comm, {&signals, 1});
}

// Collective. Returns null where all ranks are on one node.
std::unique_ptr<messages::FarWindow> make_far(mpi::Comm comm, messages::NearRanks& near,
                                              const messages::WindowMemory& own) {
  // Nodes that are parts of one machine share its cores.
  if (node::crowding(comm, mpi::size(comm)).here) near.team().waits().share_cores();
  return messages::FarWindow::create(comm, own, near.team().waits());
}

}  // namespace

Window::Window(Communicator communicator, std::size_t bytes, const WindowOptions& options) {
  const mpi::Comm comm{communicator.handle()};
  mpi::collectively(comm, [&] {
    check_options(comm, options);
    auto state = std::make_unique<State>();
    state->own_rank = mpi::rank(comm);
    state->signal_count = options.signals;
    const int size = mpi::size(comm);
    const std::vector<int> nodes = node::nodes_of_ranks(comm);
    std::vector<int> beside = ranks_beside(nodes, state->own_rank);
    const bool all_near = mpi::true_on_all(comm, static_cast<int>(beside.size()) == size);
    mpi::ScopedComm node;
    if (!all_near && !mpi::try_split(comm, nodes[static_cast<std::size_t>(state->own_rank)],
                                     state->own_rank, node.comm)) {
      throw Error(ErrorCode::mpi, "window: MPI has no communicator left; free some");
    }
    state->streaming_bytes =
        tuning::channel_limits(static_cast<int>(beside.size()), false).streaming_bytes;
    state->near = near_ranks_of(all_near ? comm : node.comm, std::move(beside), size);
    mpi::collectively(comm, [&] { state->own = make_memory(bytes, options.signals); });
    state->parts = exchange_parts(comm, *state->near, state->own, bytes);
    if (!all_near) state->far = make_far(comm, *state->near, state->own);
    state_ = std::move(state);
  });
}

Window::~Window() = default;
Window::Window(Window&&) noexcept = default;
Window& Window::operator=(Window&&) noexcept = default;

int Window::rank() const noexcept { return state_->own_rank; }
int Window::size() const noexcept { return static_cast<int>(state_->parts.size()); }
std::byte* Window::data() const noexcept { return state_->own.data; }
std::size_t Window::bytes() const noexcept { return state_->part(rank()).bytes; }

bool Window::is_near(int rank) const {
  require_rank(rank, size());
  return state_->part(rank).is_near();
}

std::byte* Window::data(int rank) const {
  if (is_near(rank)) return state_->at(rank, 0);
  throw Error(ErrorCode::unsupported, "rank: the memory of rank " + std::to_string(rank) +
                                          " is on another node; use put() and get()");
}

std::size_t Window::bytes(int rank) const {
  require_rank(rank, size());
  return state_->part(rank).bytes;
}

void Window::put(const void* from, std::size_t bytes, int to, std::size_t offset) {
  require_range(offset, bytes, this->bytes(to));
  require_buffer(from, bytes, "from");
  if (bytes == 0) return;
  if (!state_->part(to).is_near()) return state_->others().put(from, bytes, to, offset);
  kernels::copy(state_->at(to, offset), from, bytes, state_->stores(bytes));
}

void Window::get(void* into, std::size_t bytes, int from, std::size_t offset) const {
  require_range(offset, bytes, this->bytes(from));
  require_buffer(into, bytes, "into");
  if (bytes == 0) return;
  if (!state_->part(from).is_near()) return state_->others().get(into, bytes, from, offset);
  kernels::copy(into, state_->at(from, offset), bytes, state_->stores(bytes));
}

void Window::accumulate(const void* operands, std::size_t count, ElementType type, ReductionOp op,
                        int to, std::size_t offset) {
  require_element(messages::is_atomic(type, op), type, offset);
  const std::size_t end = bytes(to);
  require_range(offset, count <= end ? count * size_of(type) : SIZE_MAX, end);
  if (op != ReductionOp::no_op) require_buffer(operands, count, "operands");
  const auto* data = static_cast<const std::byte*>(operands);
  if (!state_->part(to).is_near()) {
    const OneSidedRequest request{.type = type, .op = op, .offset = offset};
    return state_->others().accumulate(request, data, count, to);
  }
  messages::apply(state_->at(to, offset), data, nullptr, count, type, op);
}

void Window::fetch_and_op(const void* operand, void* before, ElementType type, ReductionOp op,
                          int rank, std::size_t offset) {
  require_element(messages::is_atomic(type, op), type, offset);
  require_range(offset, size_of(type), bytes(rank));
  const bool has_operand = op != ReductionOp::no_op;
  if (has_operand) require_buffer(operand, 1, "operand");
  require_buffer(before, 1, "before");
  if (!state_->part(rank).is_near()) {
    const OneSidedRequest request{
        .kind = OneSidedRequest::Kind::fetch_and_op, .type = type, .op = op, .offset = offset};
    return state_->others().change_element(request, operand, has_operand ? size_of(type) : 0,
                                           before, rank);
  }
  messages::apply(state_->at(rank, offset), static_cast<const std::byte*>(operand),
                  static_cast<std::byte*>(before), 1, type, op);
}

void Window::compare_and_swap(const void* expected, const void* desired, void* before,
                              ElementType type, int rank, std::size_t offset) {
  require_element(messages::is_atomic(type), type, offset);
  const std::size_t bytes = size_of(type);
  require_range(offset, bytes, this->bytes(rank));
  require_buffer(expected, 1, "expected");
  require_buffer(desired, 1, "desired");
  require_buffer(before, 1, "before");
  if (!state_->part(rank).is_near()) {
    std::array<std::byte, 16> both{};  // elements are 8 bytes at most
    std::memcpy(both.data(), expected, bytes);
    std::memcpy(both.data() + bytes, desired, bytes);
    const OneSidedRequest request{
        .kind = OneSidedRequest::Kind::compare_and_swap, .type = type, .offset = offset};
    return state_->others().change_element(request, both.data(), 2 * bytes, before, rank);
  }
  messages::compare_and_swap(state_->at(rank, offset), static_cast<const std::byte*>(expected),
                             static_cast<const std::byte*>(desired),
                             static_cast<std::byte*>(before), type);
}

void Window::signal(int rank, int index, std::uint64_t by) {
  require_rank(rank, size());
  require_index(index, state_->signal_count);
  state_->finish_far(rank);
  const Reached& part = state_->part(rank);
  if (!part.is_near()) return state_->others().signal(rank, index, by);
  // Pairs with the acquires in signals() and wait_signal() of that rank.
  part.memory.signals[index].count.fetch_add(by, std::memory_order_release);
  state_->near->team().waits().wake_sleepers();
}

std::uint64_t Window::signals(int index) const {
  require_index(index, state_->signal_count);
  return state_->own.signals[index].count.load(std::memory_order_acquire);
}

void Window::look_around() { state_->near->team().waits().look_around(); }

void Window::wait_signal(std::uint64_t value, int index) {
  require_index(index, state_->signal_count);
  const auto& count = state_->own.signals[index].count;
  state_->near->team().waits().until(
      [&] { return count.load(std::memory_order_acquire) >= value; });
}

void Window::flush() { state_->finish_far(); }

void Window::close() { state_->close(); }

// What was stored on this node is there after the barrier of its ranks, and that between all ranks
// follows it.
void Window::fence() {
  state_->finish_far();
  state_->near->team().phases().barrier();
  if (state_->far != nullptr) state_->far->barrier();
}

}  // namespace ropewalk
