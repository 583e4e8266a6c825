// How a plan comes to be and ends, and what it knows of its tensors; see progress.cc for the rest.
#include "reduction/plan_state.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "collectives/datatypes.hpp"
#include "collectives/nodes/lanes.hpp"
#include "collectives/state.hpp"
#include "halo/joint.hpp"
#include "mpi/joint.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::reduction {
namespace {

std::string number(int index) { return std::to_string(index); }

void check_options(const ReductionPlanOptions& options, std::span<const PlanTensor> tensors) {
  if (options.bucket_bytes == 0) {
    throw Error(ErrorCode::argument,
                "bucket_bytes: 0, expected at least 1; to fuse nothing pass "
                "fuse_bytes 0");
  }
  collectives::nodes::checked_threads(options.threads);
  if (options.average && options.op != ReductionOp::sum) {
    throw Error(ErrorCode::argument, std::string("average: with operation ") + name(options.op) +
                                         ", expected sum; an average is a sum that is divided");
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ElementType type = tensors[i].type;
    if (!supports(options.op, type) ||
        (options.average && kernels::find_average(type) == nullptr)) {
      throw Error(ErrorCode::argument,
                  std::string("op: ") + (options.average ? "average" : name(options.op)) +
                      " is not defined for tensor " + std::to_string(i) + " of type " + name(type));
    }
  }
}

std::vector<halo::Fact> shared_facts(std::span<const PlanTensor> tensors) {
  std::vector<halo::Fact> facts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string name = "tensors: number " + std::to_string(i) + ": ";
    facts.push_back({name + "count", static_cast<std::int64_t>(tensors[i].count)});
    facts.push_back({name + "type (as ElementType)", static_cast<std::int64_t>(tensors[i].type)});
  }
  return facts;
}

}  // namespace

mpi::Comm checked_parent(mpi::Comm parent) {
  if (!mpi::initialized() || mpi::finalized()) {
    throw Error(ErrorCode::mpi, std::string("MPI: ") +
                                    (mpi::finalized() ? "already finalised" : "not initialised") +
                                    "; make plans between MPI_Init and MPI_Finalize");
  }
  if (parent == mpi::comm_null()) {
    throw Error(ErrorCode::argument,
                "communicator: MPI_COMM_NULL; pass a communicator this rank belongs to");
  }
  return parent;
}

PlanState::PlanState(mpi::Comm parent, std::vector<PlanTensor> tensors,
                     const ReductionPlanOptions& options)
    : parent_(checked_parent(parent)),
      comm_(mpi::comm_null()),
      given_(std::move(tensors)),
      exceptions_before_(std::uncaught_exceptions()) {
  mpi::meet(parent_);  // what fails before this is none of take_down()'s
  try {
    make(options);
  } catch (...) {  // on every rank
    take_down();
    throw;
  }
}

void PlanState::make(const ReductionPlanOptions& options) {
  mpi::jointly(parent_, [&] {
    check_jointly(options);
    comm_ = mpi::dup(parent_);  // of our own: calls of the plan's thread must not meet the caller's
  });
  mpi::jointly(comm_, [&] { set_up(options); });
}

// After a joint error. To free a communicator may be collective: one that only some ranks came to
// have is not freed at all.
void PlanState::take_down() noexcept {
  worker_.reset();
  communicator_.reset();
  for (std::byte* block : memory_) Arena::process().deallocate(block);
  try {
    std::int64_t all_have = comm_ == mpi::comm_null() ? 0 : 1;
    mpi::all_reduce(std::span(&all_have, 1), mpi::Combine::min, parent_);
    if (all_have == 1) mpi::free(comm_);
  } catch (...) {  // MPI is failing: nothing else can be done
  }
}

// Every rank gets the error that one has, or that two differ by.
void PlanState::check_jointly(const ReductionPlanOptions& options) {
  const auto as_fact = [](auto value) { return static_cast<std::int64_t>(value); };
  const std::vector<halo::Fact> facts{
      {"tensors", as_fact(given_.size())},         {"op (as ReductionOp)", as_fact(options.op)},
      {"average", as_fact(options.average)},       {"bucket_bytes", as_fact(options.bucket_bytes)},
      {"fuse_bytes", as_fact(options.fuse_bytes)}, {"thread", as_fact(options.thread)}};
  halo::agree(parent_, facts);
  if (!given_.empty()) halo::agree(parent_, shared_facts(given_));
  halo::jointly(parent_, [&] {
    buckets_ = buckets_of(given_, options.bucket_bytes, options.fuse_bytes);
    check_options(options, given_);
    for (std::size_t i = 0; i < given_.size(); ++i) {
      const Tensor made{given_[i].count, given_[i].count * size_of(given_[i].type), given_[i].input,
                        given_[i].output, nullptr};
      tensors_.push_back(made);
      bind(static_cast<int>(i), given_[i].input, given_[i].output);
    }
    take_memory();
  });
}

void PlanState::take_memory() {
  memory_.assign(buckets_.size(), nullptr);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = buckets_[b];
    const std::size_t element = size_of(bucket.type);
    const bool wanted =
        bucket.fused ||
        tensors_[static_cast<std::size_t>(bucket.pieces[0].tensor)].output == nullptr;
    if (wanted && bucket.count > 0) {
      memory_[b] = static_cast<std::byte*>(
          Arena::process().allocate(bucket.count * element, piece_alignment));
      std::fill_n(memory_[b], bucket.count * element, std::byte{0});
    }
    for (const Piece& piece : bucket.pieces) {
      Tensor& one = tensors_[static_cast<std::size_t>(piece.tensor)];
      one.bucket = static_cast<int>(b);
      if (memory_[b] != nullptr) one.memory = memory_[b] + piece.offset * element;
    }
  }
}

void PlanState::set_up(const ReductionPlanOptions& options) {
  communicator_ = std::make_unique<NodeCommunicator>(
      Communicator(comm_.value), NodeCommunicatorOptions{.threads = options.threads});
  const bool on_one_node = communicator_->nodes() == 1;
  progress_ = std::vector<Progress>(buckets_.size());
  queue_.resize(std::max<std::size_t>(1, buckets_.size()));
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    Progress& made = progress_[b];
    made.missing = buckets_[b].pieces.size();
    made.operation = collectives::operation(buckets_[b].type, options.op);
    made.operation.number = static_cast<std::uint32_t>(b) + 1;
    if (!options.average) continue;
    made.divided_apart = !communicator_->direct();
    made.operation.average = kernels::find_average(buckets_[b].type);
    made.operation.divisor = communicator_->size();
  }
  const bool multiple = mpi::thread_level() == mpi::ThreadLevel::multiple;
  thread_calls_mpi_ = multiple;
  if (options.thread && (multiple || on_one_node)) {
    worker_ = std::make_unique<Worker>([this] {
      while (reduce_next(true, false)) {
      }
    });
  }
}

PlanState::~PlanState() {
  if (!is_here()) {
    // The thread is the parent's, and MPI does not survive a fork.
    static_cast<void>(worker_.release());
    static_cast<void>(communicator_.release());
    return;
  }
  give_up();
  worker_.reset();
  while (reduce_next(true, true)) {
  }
  communicator_.reset();
  for (std::byte* block : memory_) Arena::process().deallocate(block);
  try {
    if (!mpi::finalized()) mpi::free(comm_);
  } catch (...) {  // nothing else can be done about it, nor depends on it
  }
}

// What an exception leaves behind: the others, who may wait for buckets of this rank, get an error.
void PlanState::give_up() noexcept {
  if (std::uncaught_exceptions() <= exceptions_before_) return;
  const std::lock_guard turn(turn_);
  const NodeCommunicator::State& state = communicator_->state();
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  while (head_.load(std::memory_order_relaxed) != tail) {
    try {
      state.backend->refuse("plan: ended by an exception on this rank");
    } catch (...) {  // a dead peer: the others see it for themselves
    }
    head_.fetch_add(1, std::memory_order_relaxed);
  }
}

bool PlanState::is_here() const noexcept { return fork_.same_process(); }

void PlanState::require_usable() const {
  if (is_here()) return;
  throw Error(ErrorCode::unsupported,
              "plan: made before a fork, and this is the child; reduce in the parent");
}

// ---- tensors and buckets

const PlanState::Tensor& PlanState::tensor(int index) const {
  if (index < 0 || index >= tensors()) {
    throw Error(ErrorCode::argument,
                "tensor: " + number(index) + ", expected 0 to " + number(tensors() - 1));
  }
  return tensors_[static_cast<std::size_t>(index)];
}
PlanState::Tensor& PlanState::tensor(int index) {
  return const_cast<Tensor&>(std::as_const(*this).tensor(index));
}

const Bucket& PlanState::bucket(int index) const {
  if (index < 0 || index >= buckets()) {
    throw Error(ErrorCode::argument,
                "bucket: " + number(index) + ", expected 0 to " + number(buckets() - 1));
  }
  return buckets_[static_cast<std::size_t>(index)];
}
const PlanState::Progress& PlanState::progress_of(int index) const {
  bucket(index);
  return progress_[static_cast<std::size_t>(index)];
}
PlanState::Progress& PlanState::progress_of(int index) {
  return const_cast<Progress&>(std::as_const(*this).progress_of(index));
}

int PlanState::bucket_of(int index) const { return tensor(index).bucket; }
void* PlanState::data(int index) const { return tensor(index).memory; }

void PlanState::bind(int index, const void* input, void* output) {
  Tensor& one = tensor(index);
  if (!progress_.empty()) require_idle(one.bucket, "bind");
  if (collectives::is_in_place(input)) input = nullptr;
  const std::string name = "tensor " + number(index);
  if (output == nullptr && input != nullptr && one.bytes > 0) {
    throw Error(ErrorCode::argument, "output: null for " + name +
                                         ", which has an input; pass where its result goes, or "
                                         "pass its buffer as output for in place");
  }
  if (output == nullptr && !progress_.empty() && one.memory == nullptr && one.bytes > 0) {
    throw Error(ErrorCode::argument, "output: null for " + name +
                                         ", which has no memory of the plan; make the plan without "
                                         "buffers for it, or pass some");
  }
  one.output = output;
  one.input = input == nullptr ? output : input;
}

}  // namespace ropewalk::reduction
