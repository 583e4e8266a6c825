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

#include "collectives/nodes/block.hpp"
#include "collectives/nodes/traffic.hpp"

// The vector is dealt in slices to *owners*, one of each slice on each node: these are the leaders
// of the paper, and their ranks are the endpoints of the node. An owner takes its slice in pieces:
//
//   1. it combines the piece of all inputs of its node, into its own receive buffer;
//   2. the owners of the slice combine what they have, between nodes (an Exchange);
//   3. it writes the result into the receive buffers of the others of its node.
//
// Step 2 of one piece goes on while steps 1 and 3 of others are done. Nobody on a node waits for
// anybody else between arrival and end: an owner alone reads and writes its slice of all buffers,
// so even in place nothing is overwritten that another still reads.
//
// Nodes may have different numbers of ranks: slices are as many as the largest has ranks, and where
// there are fewer ranks, one owns several.
//
// Where every node has one rank there are no steps 1 and 3, and the lanes of the rank deal its
// pieces among themselves. Which elements are in a piece, and so the order of summation, depends on
// the length of the vector alone, on the lanes only who moves it.
namespace ropewalk::collectives::nodes {
namespace {

constexpr std::size_t flights = Lanes::slots_each;  // pieces of a lane between nodes at a time

// Inputs that are not mapped are read in blocks of this size, which stay in the second cache.
constexpr std::size_t read_bytes = std::size_t{64} << 10;

std::size_t grain_of(const Operation& operation) {
  return std::max<std::size_t>(1, node::flag_stride / operation.element_bytes);
}

// What a rank shows its node of both buffers. A buffer that the others cannot reach has a copy in
// the arena for the length of the call.
class Buffers {
 public:
  Buffers(Engine& engine, const Vectors& vectors, std::size_t bytes) : vectors_(vectors) {
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
  std::optional<Block> input_;
  std::optional<Block> output_;
};

struct Piece {
  int slice;
  Range part;  // elements
};

// What a reduction is about, the same for all its lanes.
struct Reduction {
  Nodes& nodes;
  const Vectors& vectors;
  const Operation& operation;
  const Choice& choice;
  Buffers& buffers;
  const std::vector<Shown>& shown;
  Lanes* lanes;       // that share the arithmetic; null for none
  int communicating;  // lanes that do
};

// The pieces of one lane.
class Pipeline {
 public:
  Pipeline(const Reduction& call, int lane)
      : nodes_(call.nodes),
        engine_(call.nodes.engine()),
        layout_(call.nodes.layout()),
        vectors_(call.vectors),
        operation_(call.operation),
        sum_(call.operation.partial()),
        buffers_(call.buffers),
        shown_(call.shown),
        comm_(call.nodes.lane(lane)),
        bytes_(vectors_.count * operation_.element_bytes),
        piece_elements_(
            std::max<std::size_t>(1, call.choice.piece_bytes / operation_.element_bytes)) {
    deal(call.choice.slices);
    keep_own(lane, call.communicating);
    for (int slice = 0; slice < call.choice.slices; ++slice) add_owners(slice);
    Making making{nodes_, operation_, piece_elements_, call.lanes, lane * Lanes::slots_each};
    for (Flight& flight : flights_) {
      if (&flight - flights_.data() >= static_cast<std::ptrdiff_t>(pieces_.size())) break;
      flight.exchange = make(call.choice.algorithm, making, vectors_.root >= 0);
      ++making.slot;
      if (buffers_.output() == nullptr) {
        flight.partial.emplace(piece_elements_ * operation_.element_bytes);
      }
    }
  }

  // True when all pieces are done.
  bool step() {
    for (Flight& flight : flights_) {
      if (flight.busy && flight.exchange->advance()) land(flight);
      if (!flight.busy && next_ < pieces_.size()) take_off(flight);
    }
    return landed_ == pieces_.size();
  }

 private:
  struct Flight {
    std::optional<Block> partial;  // where this rank has no output
    std::unique_ptr<Exchange> exchange;
    std::byte* data = nullptr;
    Piece piece{};
    bool busy = false;
  };

  // This rank's pieces; those of several slices in turn, as all owners have them.
  void deal(int slices) {
    const int ranks = engine_.size();
    std::vector<Range> own;
    std::vector<int> numbers;
    for (int number = layout_.place(); number < slices; number += ranks) {
      own.push_back(slice(vectors_.count, number, slices, grain_of(operation_)));
      numbers.push_back(number);
    }
    bool more = true;
    for (std::size_t index = 0; more; ++index) {
      more = false;
      for (std::size_t k = 0; k < own.size(); ++k) {
        const std::size_t begin = own[k].begin + index * piece_elements_;
        if (begin >= own[k].end) continue;
        more = true;
        pieces_.push_back({numbers[k], {begin, std::min(own[k].end, begin + piece_elements_)}});
      }
    }
  }

  // All owners of a slice have the same pieces, and deal them to the same lanes.
  void keep_own(int lane, int lanes) {
    if (lanes == 1) return;
    std::size_t kept = 0;
    for (auto k = static_cast<std::size_t>(lane); k < pieces_.size();
         k += static_cast<std::size_t>(lanes)) {
      pieces_[kept++] = pieces_[k];
    }
    pieces_.resize(kept);
  }

  void add_owners(int slice) {
    std::vector<int>& owners = owners_.emplace_back();
    for (const std::vector<int>& members : layout_.members) {
      owners.push_back(members[static_cast<std::size_t>(slice) % members.size()]);
    }
  }

  Route route_of(int slice) const {
    Route route;
    route.owners = owners_[static_cast<std::size_t>(slice)];
    route.node = layout_.node;
    route.slice = slice;
    if (vectors_.root >= 0) {
      route.root_node = layout_.node_of[static_cast<std::size_t>(vectors_.root)];
    }
    route.comm = comm_;
    return route;
  }

  void take_off(Flight& flight) {
    // A tag for each piece under way between two ranks; alike on all owners of the slice.
    constexpr std::size_t tags_a_slice = 64;
    flight.piece = pieces_[next_++];
    flight.busy = true;
    flight.data = flight.partial
                      ? flight.partial->data()
                      : buffers_.output() + flight.piece.part.begin * operation_.element_bytes;
    const std::byte* input = combine_inside(flight.piece.part, flight.data);
    const std::size_t number = flight.piece.part.begin / piece_elements_ % tags_a_slice;
    const int with_tag = nodes_.pieces_tag() + flight.piece.slice * static_cast<int>(tags_a_slice) +
                         static_cast<int>(number);
    flight.exchange->start(route_of(flight.piece.slice), with_tag, input, flight.data,
                           flight.piece.part.length());
    if (flight.exchange->advance()) land(flight);
  }

  void land(Flight& flight) {
    const std::size_t offset = flight.piece.part.begin * operation_.element_bytes;
    const std::size_t bytes = flight.piece.part.length() * operation_.element_bytes;
    for (int place = 0; place < engine_.size(); ++place) {
      const bool wants =
          vectors_.root < 0 || layout_.own()[static_cast<std::size_t>(place)] == vectors_.root;
      if (place == engine_.rank() || !wants) continue;
      if (!engine_.memory().write(place, shown_[static_cast<std::size_t>(place)].receive + offset,
                                  flight.data, bytes, engine_.stores(bytes_))) {
        throw_unreachable(place);
      }
    }
    flight.busy = false;
    ++landed_;
  }

  // Step 1 of a piece, into `result`; a rank that is alone on its node has it where it is.
  const std::byte* combine_inside(const Range& part, std::byte* result) {
    const std::size_t element = operation_.element_bytes;
    if (engine_.size() == 1) {
      return static_cast<const std::byte*>(vectors_.send) + part.begin * element;
    }
    const std::size_t step = std::max<std::size_t>(1, read_bytes / element);
    for (std::size_t begin = part.begin; begin < part.end; begin += step) {
      const std::size_t count = std::min(step, part.end - begin);
      for (int place = 0; place < engine_.size(); ++place) {
        engine_.inputs[place] = input(place, begin * element, count * element, step * element);
      }
      void* output = result + (begin - part.begin) * element;
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
  const Layout& layout_;
  const Vectors& vectors_;
  const Operation& operation_;
  Operation sum_;  // the same, not divided
  Buffers& buffers_;
  const std::vector<Shown>& shown_;
  mpi::Comm comm_;
  std::size_t bytes_;
  std::size_t piece_elements_;
  std::vector<Piece> pieces_;
  std::vector<std::vector<int>> owners_;  // of each slice, by node
  std::array<Flight, flights> flights_;
  std::optional<Block> read_;
  std::size_t next_ = 0;
  std::size_t landed_ = 0;
};

// The lanes of a reduction at work. The caller steps lane 0, and lanes that no thread has come for;
// it alone looks for notices and for the dead, as it waits.
class Crew {
 public:
  explicit Crew(const Reduction& call) : lanes_(call.lanes) {
    for (int lane = 0; lane < call.communicating; ++lane) {
      pipelines_.push_back(std::make_unique<Pipeline>(call, lane));
    }
    if (lanes_ == nullptr) return;
    lanes_->begin(
        call.communicating, [](void* crew, int lane) { static_cast<Crew*>(crew)->run(lane); },
        this);
  }
  // However the call ends: no thread is in its buffers afterwards.
  ~Crew() {
    if (lanes_ != nullptr) lanes_->end();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // One step of the caller; true when all lanes are done.
  bool step() {
    if (lanes_ == nullptr) return pipelines_[0]->step();
    if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
    if (own_ >= 0 && pipelines_[static_cast<std::size_t>(own_)]->step()) {
      const int next = lanes_->take_lane();
      own_ = next != 0 ? next : -1;
      done_.fetch_add(1, std::memory_order_relaxed);
    }
    // Acquire pairs with the release in run().
    if (done_.load(std::memory_order_acquire) == static_cast<int>(pipelines_.size())) return true;
    lanes_->help(std::max(own_, 0) * Lanes::slots_each);
    return false;
  }

 private:
  // On another thread.
  void run(int lane) noexcept {
    try {
      Pipeline& own = *pipelines_[static_cast<std::size_t>(lane)];
      while (!own.step()) {
        if (lanes_->stopped()) return;
        if (!lanes_->help(lane * Lanes::slots_each)) sched_yield();
      }
      done_.fetch_add(1, std::memory_order_release);
    } catch (...) {
      if (failing_.exchange(true, std::memory_order_relaxed)) return;  // the first one is told
      error_ = std::current_exception();
      failed_.store(true, std::memory_order_release);
    }
  }

  Lanes* lanes_;
  std::vector<std::unique_ptr<Pipeline>> pipelines_;
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
  Buffers buffers(engine, vectors, bytes);
  node::Slot& own = engine.arrivals().claim(rooted ? Kind::reduce : Kind::allreduce, vectors.count,
                                            operation.code(),
                                            static_cast<std::uint32_t>(std::max(vectors.root, 0)));
  const std::vector<Shown>& shown = engine.meet(own, buffers.shown);
  const Header header{own.call, own.count};
  if (choice.algorithm == Algorithm::mpi && !rooted && !nodes.make_owners(header)) {
    choice.algorithm = Algorithm::ring;  // which needs none
  }
  Lanes* lanes = nullptr;
  if (is_nonblocking(choice.algorithm, rooted)) lanes = nodes.make_lanes(header);
  const int communicating = lanes != nullptr ? nodes.communicating_lanes() : 1;
  Crew crew({nodes, vectors, operation, choice, buffers, shown, lanes, communicating});
  nodes.wait_until([&] { return crew.step(); });
  engine.leave();
  buffers.finish(bytes);
}

}  // namespace ropewalk::collectives::nodes
