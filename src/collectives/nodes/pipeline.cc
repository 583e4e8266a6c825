#include "collectives/nodes/pipeline.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/nodes/arena_block.hpp"
#include "collectives/nodes/traffic.hpp"

// The vector is dealt in slices to leaders, one for each slice on each node. A leader takes its
// slice in chunks:
//
//   1. it combines the chunk of all inputs of its node, into its own receive buffer;
//   2. the leaders of the slice combine what they have, between nodes (a ChunkExchange);
//   3. it writes the result into the receive buffers of the other ranks of its node.
//
// Step 2 of one chunk goes on while steps 1 and 3 of others are done. Between arrival and end no
// rank of a node waits for another: a leader alone reads and writes its slice of all buffers, so
// even in place nothing is overwritten that another still reads.
//
// Nodes may have different numbers of ranks: there are as many slices as the largest node has
// ranks, and on a node with fewer ranks one rank leads several.
//
// Where every node has one rank there are no steps 1 and 3, and the lanes of the rank deal its
// chunks among themselves. Which elements are in a chunk, and so the order of summation, depends on
// the length of the vector alone; the number of lanes only decides who moves it.
namespace ropewalk::collectives::nodes {
namespace {

constexpr std::size_t most_in_flight = ReductionThreads::slots_each;  // chunks of a lane
// A chunk's tag is its number modulo this. The chunk that has the tag next waits for its end.
constexpr std::size_t tags_a_slice = 64;

// This is what a rank shows its node of both buffers. A buffer that the others cannot reach has a
// copy in the arena for the length of the call.
class ShownBuffers {
 public:
  ShownBuffers(Engine& engine, const Vectors& vectors, std::size_t bytes) : vectors_(vectors) {
    if (engine.size() == 1) return;
    shown.send = engine.memory().reachable(vectors.send, bytes);
    if (shown.send.is_none()) {
      input_.emplace(bytes);
      std::memcpy(input_->data(), vectors.send, bytes);
      shown.send = channel::PeerMemory::in_arena(input_->data());
    }
    if (vectors.receive == nullptr) return;
    shown.receive = engine.memory().reachable(vectors.receive, bytes);
    if (shown.receive.is_none()) {
      output_.emplace(bytes);
      shown.receive = channel::PeerMemory::in_arena(output_->data());
    }
  }

  std::byte* output() const {
    return output_ ? output_->data() : static_cast<std::byte*>(vectors_.receive);
  }
  // To be called when nobody writes to the output any more.
  void finish(std::size_t bytes) {
    if (output_) std::memcpy(vectors_.receive, output_->data(), bytes);
  }

  Shown shown;

 private:
  const Vectors& vectors_;
  std::optional<ArenaBlock> input_;
  std::optional<ArenaBlock> output_;
};

struct SliceChunk {
  int slice;
  Range range;         // elements
  std::size_t number;  // in the slice and lane, the same on all leaders of the slice
};

// What a reduction is about, the same for all its lanes.
struct PipelinedReduction {
  Nodes& nodes;
  const Vectors& vectors;
  const Operation& operation;
  const Choice& choice;
  ShownBuffers& buffers;
  const std::vector<Shown>& shown;
  ReductionThreads* threads;  // that share the arithmetic; null: the caller alone
  int lanes;                  // that communicate
};

// Moves the chunks of one lane.
class Pipeline {
 public:
  Pipeline(const PipelinedReduction& call, int lane)
      : nodes_(call.nodes),
        engine_(call.nodes.engine()),
        layout_(call.nodes.layout()),
        vectors_(call.vectors),
        operation_(call.operation),
        sum_(call.operation.partial()),
        buffers_(call.buffers),
        shown_(call.shown),
        comm_(call.nodes.comms().lane(lane)),
        bytes_(vectors_.count * operation_.element_bytes),
        chunk_elements_(
            std::max<std::size_t>(1, call.choice.chunk_bytes / operation_.element_bytes)) {
    deal(call.choice.slices);
    keep_own(lane, call.lanes);
    for (int slice = 0; slice < call.choice.slices; ++slice) add_leaders(slice);
    ExchangeSetup setup{nodes_, operation_, chunk_elements_, call.threads,
                        lane * ReductionThreads::slots_each};
    for (ChunkInFlight& chunk : in_flight_) {
      if (&chunk - in_flight_.data() >= static_cast<std::ptrdiff_t>(chunks_.size())) break;
      chunk.exchange = make_exchange(call.choice.algorithm, setup, vectors_.root >= 0);
      ++setup.slot;
      if (buffers_.output() == nullptr) {
        chunk.partial.emplace(chunk_elements_ * operation_.element_bytes);
      }
    }
  }

  // Makes one step. Returns true when all chunks are done.
  bool step() {
    for (ChunkInFlight& chunk : in_flight_) {
      if (chunk.busy && chunk.exchange->advance()) finish(chunk);
      if (!chunk.busy && may_start_next()) start_next(chunk);
    }
    return finished_ == chunks_.size();
  }

 private:
  struct ChunkInFlight {
    std::optional<ArenaBlock> partial;  // where this rank has no output
    std::unique_ptr<ChunkExchange> exchange;
    std::byte* data = nullptr;
    SliceChunk at{};
    bool busy = false;
  };

  // This rank's chunks; those of several slices in turn, as all leaders have them.
  void deal(int slices) {
    const int ranks = engine_.size();
    std::vector<Range> own;
    std::vector<int> numbers;
    for (int number = layout_.place(); number < slices; number += ranks) {
      own.push_back(slice(vectors_.count, number, slices, operation_.slice_grain()));
      numbers.push_back(number);
    }
    bool more = true;
    for (std::size_t index = 0; more; ++index) {
      more = false;
      for (std::size_t k = 0; k < own.size(); ++k) {
        const std::size_t begin = own[k].begin + index * chunk_elements_;
        if (begin >= own[k].end) continue;
        more = true;
        const Range range{begin, std::min(own[k].end, begin + chunk_elements_)};
        chunks_.push_back({numbers[k], range, index});
      }
    }
  }

  // All leaders of a slice have the same chunks, and deal them to the same lanes. Where there are
  // several lanes there is one slice.
  void keep_own(int lane, int lanes) {
    if (lanes == 1) return;
    std::size_t kept = 0;
    for (auto k = static_cast<std::size_t>(lane); k < chunks_.size();
         k += static_cast<std::size_t>(lanes)) {
      chunks_[kept] = chunks_[k];
      chunks_[kept].number = kept;
      ++kept;
    }
    chunks_.resize(kept);
  }

  void add_leaders(int slice) {
    std::vector<int>& leaders = leaders_.emplace_back();
    for (const std::vector<int>& members : layout_.members) {
      leaders.push_back(members[static_cast<std::size_t>(slice) % members.size()]);
    }
  }

  Route route_of(int slice) const {
    Route route;
    route.leaders = leaders_[static_cast<std::size_t>(slice)];
    route.node = layout_.node;
    route.slice = slice;
    if (vectors_.root >= 0) {
      route.root_node = layout_.node_of[static_cast<std::size_t>(vectors_.root)];
    }
    route.comm = comm_;
    return route;
  }

  // Chunks with the same tag follow each other on every leader, so that MPI's order of messages
  // keeps theirs apart.
  bool may_start_next() const {
    if (next_ == chunks_.size()) return false;
    return std::ranges::all_of(in_flight_, [&](const ChunkInFlight& chunk) {
      return !chunk.busy || chunks_[next_].number < chunk.at.number + tags_a_slice;
    });
  }

  void start_next(ChunkInFlight& chunk) {
    chunk.at = chunks_[next_++];
    chunk.busy = true;
    chunk.data = chunk.partial
                     ? chunk.partial->data()
                     : buffers_.output() + chunk.at.range.begin * operation_.element_bytes;
    const std::byte* input = combine_inside(chunk.at.range, chunk.data);
    const std::size_t tag_in_slice = chunk.at.number % tags_a_slice;
    const int with_tag = nodes_.messages().chunk_tag() +
                         chunk.at.slice * static_cast<int>(tags_a_slice) +
                         static_cast<int>(tag_in_slice);
    chunk.exchange->start(route_of(chunk.at.slice), with_tag, input, chunk.data,
                          chunk.at.range.length());
    if (chunk.exchange->advance()) finish(chunk);
  }

  void finish(ChunkInFlight& chunk) {
    const std::size_t offset = chunk.at.range.begin * operation_.element_bytes;
    const std::size_t bytes = chunk.at.range.length() * operation_.element_bytes;
    for (int place = 0; place < engine_.size(); ++place) {
      const bool wants =
          vectors_.root < 0 || layout_.own()[static_cast<std::size_t>(place)] == vectors_.root;
      if (place == engine_.rank() || !wants) continue;
      if (!engine_.memory().write(place, shown_[static_cast<std::size_t>(place)].receive + offset,
                                  chunk.data, bytes, engine_.stores(bytes_))) {
        throw_unreachable(place);
      }
    }
    chunk.busy = false;
    ++finished_;
  }

  // Makes step 1 of a chunk, into `result`; a rank that is alone on its node has it where it is.
  const std::byte* combine_inside(const Range& range, std::byte* result) {
    const std::size_t element = operation_.element_bytes;
    if (engine_.size() == 1) {
      return static_cast<const std::byte*>(vectors_.send) + range.begin * element;
    }
    const std::size_t read_bytes = nodes_.values()[tuning::Id::nodes_read];
    const std::size_t step = std::max<std::size_t>(1, read_bytes / element);
    for (std::size_t begin = range.begin; begin < range.end; begin += step) {
      const std::size_t count = std::min(step, range.end - begin);
      for (int place = 0; place < engine_.size(); ++place) {
        engine_.inputs[place] = input(place, begin * element, count * element, step * element);
      }
      void* output = result + (begin - range.begin) * element;
      sum_.combine(std::span(&output, 1), engine_.inputs, count, kernels::Stores::temporal);
    }
    return result;
  }

  const void* input(int place, std::size_t offset, std::size_t bytes, std::size_t room) {
    if (place == engine_.rank()) return static_cast<const std::byte*>(vectors_.send) + offset;
    const Shown& theirs = shown_[static_cast<std::size_t>(place)];
    if (theirs.send.is_visible()) {
      if (const std::byte* there = engine_.memory().resolve(place, theirs.send + offset, bytes)) {
        return there;
      }
    }
    if (!read_) read_.emplace(room * static_cast<std::size_t>(engine_.size()));
    std::byte* copy = read_->data() + room * static_cast<std::size_t>(place);
    if (!engine_.copies().read(copy, place, theirs, offset, bytes, kernels::Stores::temporal)) {
      throw_unreachable(place);
    }
    return copy;
  }

  [[noreturn]] void throw_unreachable(int place) const {
    throw Error(ErrorCode::system,
                "collective: a private buffer of rank " +
                    std::to_string(layout_.own()[static_cast<std::size_t>(place)]) +
                    " could not be reached (process_vm_readv, XPMEM); results are incomplete; "
                    "check the buffers' addresses and counts");
  }

  Nodes& nodes_;
  Engine& engine_;
  const NodeLayout& layout_;
  const Vectors& vectors_;
  const Operation& operation_;
  Operation sum_;  // the same, not divided
  ShownBuffers& buffers_;
  const std::vector<Shown>& shown_;
  mpi::Comm comm_;
  std::size_t bytes_;
  std::size_t chunk_elements_;
  std::vector<SliceChunk> chunks_;
  std::vector<std::vector<int>> leaders_;  // of each slice, by node
  std::array<ChunkInFlight, most_in_flight> in_flight_;
  std::optional<ArenaBlock> read_;
  std::size_t next_ = 0;
  std::size_t finished_ = 0;
};

// These are the pipelines of a reduction, one for each lane. The caller steps that of lane 0, and
// those that no thread has come for; it alone looks for error notices and for dead ranks while it
// waits.
class Pipelines {
 public:
  explicit Pipelines(const PipelinedReduction& call) : threads_(call.threads) {
    for (int lane = 0; lane < call.lanes; ++lane) {
      lanes_.push_back(std::make_unique<Pipeline>(call, lane));
    }
    if (threads_ == nullptr) return;
    threads_->begin(
        call.lanes, [](void* own, int lane) { static_cast<Pipelines*>(own)->run(lane); }, this);
  }
  // However the call ends: no thread is in its buffers afterwards.
  ~Pipelines() {
    if (threads_ != nullptr) threads_->end();
  }
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  // Makes one step of the caller; returns true when all lanes are done.
  bool step() {
    if (threads_ == nullptr) return lanes_[0]->step();
    if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
    if (own_ >= 0 && lanes_[static_cast<std::size_t>(own_)]->step()) {
      const int next = threads_->take_lane();
      own_ = next != 0 ? next : -1;
      done_.fetch_add(1, std::memory_order_relaxed);
    }
    // Acquire pairs with the release in run().
    if (done_.load(std::memory_order_acquire) == static_cast<int>(lanes_.size())) return true;
    threads_->help(std::max(own_, 0) * ReductionThreads::slots_each);
    return false;
  }

 private:
  // Runs on another thread.
  void run(int lane) noexcept {
    try {
      Pipeline& own = *lanes_[static_cast<std::size_t>(lane)];
      while (!own.step()) {
        if (threads_->stopped()) return;
        if (!threads_->help(lane * ReductionThreads::slots_each)) sched_yield();
      }
      done_.fetch_add(1, std::memory_order_release);
    } catch (...) {
      if (failing_.exchange(true, std::memory_order_relaxed)) return;  // the first one is told
      error_ = std::current_exception();
      failed_.store(true, std::memory_order_release);
    }
  }

  ReductionThreads* threads_;
  std::vector<std::unique_ptr<Pipeline>> lanes_;
  int own_ = 0;  // the lane that the caller steps; -1: none is left
  std::atomic<int> done_{0};
  std::atomic<bool> failing_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // released by failed_
};

}  // namespace

void pipelined_reduce(Nodes& nodes, const Vectors& vectors, const Operation& operation,
                      Choice choice) {
  Engine& engine = nodes.engine();
  const std::size_t bytes = vectors.count * operation.element_bytes;
  const bool rooted = vectors.root >= 0;
  ShownBuffers buffers(engine, vectors, bytes);
  node::Slot& own = engine.arrivals().claim(rooted ? Kind::reduce : Kind::allreduce, vectors.count,
                                            operation.code(),
                                            static_cast<std::uint32_t>(std::max(vectors.root, 0)));
  const std::vector<Shown>& shown = engine.meet(own, buffers.shown);
  const Header header{own.call, own.count};
  if (choice.algorithm == Algorithm::mpi && !rooted && !nodes.make_leaders(header)) {
    choice.algorithm = Algorithm::ring;  // which needs none
  }
  ReductionThreads* threads = nullptr;
  if (is_nonblocking(choice.algorithm, rooted)) threads = nodes.make_threads(header);
  const int lanes = threads != nullptr ? nodes.comms().lanes() : 1;
  Pipelines pipelines({nodes, vectors, operation, choice, buffers, shown, threads, lanes});
  nodes.waits().until([&] { return pipelines.step(); });
  engine.leave();
  buffers.finish(bytes);
}

}  // namespace ropewalk::collectives::nodes
