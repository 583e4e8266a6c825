#include "ropewalk/window.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernels.hpp"
#include "messages/atomic_elements.hpp"
#include "messages/near_ranks.hpp"
#include "mpi/collectively.hpp"
#include "node/rank_nodes.hpp"
#include "ropewalk/memory.hpp"
#include "tuning/limits.hpp"

namespace ropewalk {
namespace {

// This counter is raised by several ranks, and has lines of its own.
struct alignas(node::flag_stride) Signal {
  std::atomic<std::uint64_t> count;
};

// Says where a rank's part of the window lies in its arena.
struct Part {
  std::uint64_t memory;
  std::uint64_t bytes;
  std::uint64_t signals;
};

constexpr int most_signals = 1 << 16;

}  // namespace

struct Window::State {
  ~State() {
    if (near == nullptr) return;
    near->keep(memory);
    near->keep(signals);
    near->end();
  }
  const Part& part(int rank) const { return parts[static_cast<std::size_t>(rank)]; }
  std::byte* at(int rank, std::size_t offset) const {
    return near->base(rank) + part(rank).memory + offset;
  }
  Signal& signal(int rank, int index) const {
    return reinterpret_cast<Signal*>(near->base(rank) + part(rank).signals)[index];
  }

  std::unique_ptr<messages::NearRanks> near;  // all ranks, by their rank
  std::byte* memory = nullptr;
  Signal* signals = nullptr;
  int signal_count = 0;
  std::size_t streaming_bytes = 0;
  std::vector<Part> parts;  // by rank
};

namespace {

void require_rank(int rank, int size) {
  if (rank >= 0 && rank < size) return;
  throw Error(ErrorCode::argument, "rank: " + std::to_string(rank) + " of a window of " +
                                       std::to_string(size) + "; pass 0 to its size - 1");
}

void require_range(std::size_t offset, std::size_t bytes, std::size_t end) {
  if (offset <= end && bytes <= end - offset) return;
  throw Error(ErrorCode::argument, "offset: " + std::to_string(bytes) + " bytes at " +
                                       std::to_string(offset) + " of a window of " +
                                       std::to_string(end) + "; pass a range inside of it");
}

void require_buffer(const void* buffer, std::size_t bytes, const char* name) {
  if (buffer != nullptr || bytes == 0) return;
  throw Error(ErrorCode::argument, std::string(name) + ": null for " + std::to_string(bytes) +
                                       " bytes; pass the buffer");
}

void require_element(bool is_atomic, ElementType type, std::size_t offset) {
  if (!is_atomic) {
    throw Error(ErrorCode::argument,
                "type: the operation is not atomic for this type; use elements of 1, 2, 4 or 8 "
                "bytes and an operation that MPI allows for them");
  }
  if (offset % size_of(type) == 0) return;
  throw Error(ErrorCode::argument, "offset: " + std::to_string(offset) +
                                       " is no multiple of the element's " +
                                       std::to_string(size_of(type)) + " bytes; align it");
}

void require_index(int index, int count) {
  if (index >= 0 && index < count) return;
  throw Error(ErrorCode::argument, "index: signal " + std::to_string(index) + " of " +
                                       std::to_string(count) +
                                       "; ask for more with WindowOptions::signals");
}

std::unique_ptr<messages::NearRanks> near_ranks_of(mpi::Comm comm) {
  const int size = mpi::size(comm);
  const std::vector<int> nodes = node::nodes_of_ranks(comm);
  std::vector<int> all;
  for (int rank = 0; rank < size; ++rank) {
    if (nodes[static_cast<std::size_t>(rank)] != nodes[0]) {
      throw Error(ErrorCode::unsupported,
                  "window: the ranks are on several nodes; make one window a node, with a "
                  "SplitCommunicator");
    }
    all.push_back(rank);
  }
  std::string reason;
  auto near = messages::NearRanks::create(comm, std::move(all), size, {}, reason);
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

}  // namespace

Window::Window(Communicator communicator, std::size_t bytes, const WindowOptions& options) {
  const mpi::Comm comm{communicator.handle()};
  mpi::collectively(comm, [&] {
    if (options.signals < 0 || options.signals > most_signals) {
      throw Error(ErrorCode::argument, "signals: " + std::to_string(options.signals) +
                                           "; pass 0 to " + std::to_string(most_signals));
    }
    const mpi::Fact signals{"signals", options.signals};
    mpi::same_on_all(comm, {&signals, 1});
    auto state = std::make_unique<State>();
    state->near = near_ranks_of(comm);
    state->signal_count = options.signals;
    const int size = state->near->size();
    state->streaming_bytes = tuning::channel_limits(size, false).streaming_bytes;
    mpi::collectively(comm, [&] {
      state->memory = static_cast<std::byte*>(allocate_zeroed(std::max<std::size_t>(bytes, 1)));
      state->signals = static_cast<Signal*>(allocate_zeroed(
          std::max<std::size_t>(static_cast<std::size_t>(options.signals), 1) * sizeof(Signal)));
    });
    Arena& arena = Arena::process();
    const Part own{arena.offset(state->memory), bytes, arena.offset(state->signals)};
    state->parts.resize(static_cast<std::size_t>(size));
    mpi::all_gather(&own, state->parts.data(), sizeof own, comm);
    state_ = std::move(state);
  });
}

Window::~Window() = default;
Window::Window(Window&&) noexcept = default;
Window& Window::operator=(Window&&) noexcept = default;

int Window::rank() const noexcept { return state_->near->place(); }
int Window::size() const noexcept { return state_->near->size(); }
std::byte* Window::data() const noexcept { return state_->memory; }
std::size_t Window::bytes() const noexcept { return state_->part(rank()).bytes; }

std::byte* Window::data(int rank) const {
  require_rank(rank, size());
  return state_->at(rank, 0);
}

std::size_t Window::bytes(int rank) const {
  require_rank(rank, size());
  return state_->part(rank).bytes;
}

void Window::put(const void* from, std::size_t bytes, int to, std::size_t offset) {
  require_range(offset, bytes, this->bytes(to));
  require_buffer(from, bytes, "from");
  const auto stores =
      bytes >= state_->streaming_bytes ? kernels::Stores::streaming : kernels::Stores::temporal;
  if (bytes != 0) kernels::copy(state_->at(to, offset), from, bytes, stores);
}

void Window::get(void* into, std::size_t bytes, int from, std::size_t offset) const {
  require_range(offset, bytes, this->bytes(from));
  require_buffer(into, bytes, "into");
  const auto stores =
      bytes >= state_->streaming_bytes ? kernels::Stores::streaming : kernels::Stores::temporal;
  if (bytes != 0) kernels::copy(into, state_->at(from, offset), bytes, stores);
}

void Window::accumulate(const void* operands, std::size_t count, ElementType type, ReductionOp op,
                        int to, std::size_t offset) {
  require_element(messages::is_atomic(type, op), type, offset);
  const std::size_t end = bytes(to);
  require_range(offset, count <= end ? count * size_of(type) : SIZE_MAX, end);
  if (op != ReductionOp::no_op) require_buffer(operands, count, "operands");
  messages::apply(state_->at(to, offset), static_cast<const std::byte*>(operands), nullptr, count,
                  type, op);
}

void Window::fetch_and_op(const void* operand, void* before, ElementType type, ReductionOp op,
                          int rank, std::size_t offset) {
  require_element(messages::is_atomic(type, op), type, offset);
  require_range(offset, size_of(type), bytes(rank));
  if (op != ReductionOp::no_op) require_buffer(operand, 1, "operand");
  require_buffer(before, 1, "before");
  messages::apply(state_->at(rank, offset), static_cast<const std::byte*>(operand),
                  static_cast<std::byte*>(before), 1, type, op);
}

void Window::compare_and_swap(const void* expected, const void* desired, void* before,
                              ElementType type, int rank, std::size_t offset) {
  require_element(messages::is_atomic(type), type, offset);
  require_range(offset, size_of(type), bytes(rank));
  require_buffer(expected, 1, "expected");
  require_buffer(desired, 1, "desired");
  require_buffer(before, 1, "before");
  messages::compare_and_swap(state_->at(rank, offset), static_cast<const std::byte*>(expected),
                             static_cast<const std::byte*>(desired),
                             static_cast<std::byte*>(before), type);
}

void Window::signal(int rank, int index, std::uint64_t by) {
  require_rank(rank, size());
  require_index(index, state_->signal_count);
  // Pairs with the acquires in signals() and wait_signal() of that rank.
  state_->signal(rank, index).count.fetch_add(by, std::memory_order_release);
  state_->near->team().waits().wake_sleepers();
}

std::uint64_t Window::signals(int index) const {
  require_index(index, state_->signal_count);
  return state_->signals[index].count.load(std::memory_order_acquire);
}

void Window::wait_signal(std::uint64_t value, int index) {
  require_index(index, state_->signal_count);
  const auto& count = state_->signals[index].count;
  state_->near->team().waits().until(
      [&] { return count.load(std::memory_order_acquire) >= value; });
}

void Window::fence() { state_->near->team().phases().barrier(); }

}  // namespace ropewalk
