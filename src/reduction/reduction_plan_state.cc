// How a plan comes to be, is used, and ends.
#include "reduction/reduction_plan_state.hpp"

#include <new>
#include <span>
#include <string>

#include "collectives/state.hpp"
#include "kernels/kernels.hpp"
#include "mpi/collectively.hpp"
#include "mpi/progress.hpp"
#include "os/waiting.hpp"

namespace ropewalk::reduction {
namespace {

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

std::vector<mpi::Fact> shared_facts(std::span<const PlanTensor> tensors) {
  std::vector<mpi::Fact> facts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string name = "tensors: number " + std::to_string(i) + ": ";
    facts.push_back({name + "count", static_cast<std::int64_t>(tensors[i].count)});
    facts.push_back({name + "type (as ElementType)", static_cast<std::int64_t>(tensors[i].type)});
  }
  return facts;
}

// Every rank gets the error that one has, or that two differ by.
std::unique_ptr<PlanTensors> make_tensors(mpi::Comm parent, const std::vector<PlanTensor>& tensors,
                                          const ReductionPlanOptions& options) {
  const auto as_fact = [](auto value) { return static_cast<std::int64_t>(value); };
  const std::vector<mpi::Fact> facts{
      {"tensors", as_fact(tensors.size())},        {"op (as ReductionOp)", as_fact(options.op)},
      {"average", as_fact(options.average)},       {"bucket_bytes", as_fact(options.bucket_bytes)},
      {"fuse_bytes", as_fact(options.fuse_bytes)}, {"thread", as_fact(options.thread)}};
  mpi::same_on_all(parent, facts);
  if (!tensors.empty()) mpi::same_on_all(parent, shared_facts(tensors));
  std::unique_ptr<PlanTensors> made;
  mpi::collectively(parent, [&] {
    std::vector<Bucket> buckets = buckets_of(tensors, options.bucket_bytes, options.fuse_bytes);
    check_options(options, tensors);
    made = std::make_unique<PlanTensors>(tensors, std::move(buckets));
  });
  return made;
}

}  // namespace

mpi::Comm checked_parent(mpi::Comm parent) {
  mpi::require_running("make plans between MPI_Init and MPI_Finalize");
  return mpi::usable(parent);
}

ReductionPlanState::ReductionPlanState(mpi::Comm parent, const std::vector<PlanTensor>& tensors,
                                       const ReductionPlanOptions& options)
    : parent_(checked_parent(parent)), comm_(mpi::comm_null()) {
  mpi::meet(parent_);  // what fails before this is none of take_down()'s
  try {
    make(tensors, options);
  } catch (...) {  // on every rank
    take_down();
    throw;
  }
}

void ReductionPlanState::make(const std::vector<PlanTensor>& tensors,
                              const ReductionPlanOptions& options) {
  mpi::collectively(parent_, [&] {
    tensors_ = make_tensors(parent_, tensors, options);
    comm_ = mpi::dup(parent_);  // of our own: calls of the plan's thread must not meet the caller's
  });
  mpi::collectively(comm_, [&] {
    ready_ = std::make_unique<ReadyTensors>(*tensors_);
    queue_ = std::make_unique<BucketQueue>(tensors_->buckets());
    reducer_ = std::make_unique<BucketReducer>(comm_, *tensors_, options);
    if (options.thread && reducer_->serves_threads()) {
      thread_ = std::make_unique<ReductionThread>([this] {
        while (reduce_next(true, false)) {
        }
      });
    }
  });
}

// This follows a collective error. Freeing a communicator may be collective, so one that only some
// ranks have is not freed at all.
void ReductionPlanState::take_down() noexcept {
  thread_.reset();
  reducer_.reset();
  try {
    if (mpi::true_on_all(parent_, comm_ != mpi::comm_null())) mpi::free(comm_);
  } catch (...) {  // MPI is failing: nothing else can be done
  }
}

ReductionPlanState::~ReductionPlanState() {
  if (!is_here()) {
    // The thread is the parent's, and MPI does not survive a fork.
    static_cast<void>(thread_.release());
    static_cast<void>(reducer_.release());
    static_cast<void>(new (std::nothrow) auto(std::move(tensors_)));
    return;
  }
  // What an exception leaves behind: the others, who may wait for buckets of this rank, get an
  // error.
  if (unwinding_) {
    queue_->give_up([this] { reducer_->refuse(); });
  }
  thread_.reset();
  while (reduce_next(true, true)) {
  }
  reducer_.reset();
  try {
    if (!mpi::finalized()) mpi::free(comm_);
  } catch (...) {  // nothing else can be done about it, nor depends on it
  }
}

void ReductionPlanState::require_usable() const {
  if (is_here()) return;
  throw Error(ErrorCode::unsupported,
              "plan: made before a fork, and this is the child; reduce in the parent");
}

void ReductionPlanState::require_idle(int bucket, const char* call) const {
  if (!queue_->under_way(bucket)) return;
  throw Error(ErrorCode::argument, std::string(call) + ": bucket " + std::to_string(bucket) +
                                       " is under way already; call wait() before");
}

void ReductionPlanState::bind(int tensor, const void* input, void* output) {
  require_idle(tensors_->bucket_of(tensor), "bind");
  tensors_->bind(tensor, input, output);
}

// ---- starting

void ReductionPlanState::start(int bucket) {
  require_usable();
  tensors_->bucket(bucket);
  require_idle(bucket, "start");
  queue_->push(bucket);
  wake_thread();
}

void ReductionPlanState::push_idle() {
  require_usable();
  const int first = ready_->first_left();
  int idle = 0;
  for (int bucket = first; bucket < tensors_->buckets(); ++bucket) {
    if (queue_->under_way(bucket)) continue;
    queue_->push(bucket);
    ++idle;
  }
  if (idle == 0 && first < tensors_->buckets()) {
    throw Error(ErrorCode::argument,
                "start: every bucket is under way already; call wait() before");
  }
  ready_->start_all();
  ++rounds_;
}

void ReductionPlanState::start_all() {
  push_idle();
  wake_thread();
}

void ReductionPlanState::reduce_all() {
  push_idle();
  wait_all(rounds_);
}

void ReductionPlanState::ready(int tensor) {
  require_usable();
  const std::uint64_t before = queue_->pushed();
  ready_->add(tensor);
  for (int bucket = 0; (bucket = ready_->startable()) >= 0; ready_->start_next()) {
    require_idle(bucket, "ready");
    queue_->push(bucket);
  }
  if (queue_->pushed() != before) wake_thread();
}

bool ReductionPlanState::reduce_next(bool wait_for_turn, bool by_caller) noexcept {
  return queue_->reduce_next(wait_for_turn,
                             [&](int bucket) { reducer_->reduce(bucket, by_caller); });
}

// ---- waiting

bool ReductionPlanState::test(int bucket, std::uint64_t round) {
  require_usable();
  if (queue_->rounds_of(bucket) != round) return true;
  if (queue_->under_way(bucket) && !has_thread()) reduce_next(false, true);
  if (queue_->under_way(bucket)) return false;
  queue_->rethrow(bucket);
  return true;
}

void ReductionPlanState::wait(int bucket, std::uint64_t round) {
  require_usable();
  if (queue_->rounds_of(bucket) != round) return;
  os::Waiting wait(os::wait_for_reduction);
  while (queue_->under_way(bucket)) {
    if (reduce_next(false, true)) {  // what the thread had not begun
      wait.restart();
      continue;
    }
    if (!wait.spins()) wait.poll([] { mpi::progress(); });
    wait.pause([&](std::int64_t longest_ns) { queue_->sleep_until_complete(bucket, longest_ns); });
  }
  queue_->rethrow(bucket);
}

bool ReductionPlanState::test_all(std::uint64_t round) {
  require_usable();
  if (round != rounds_) return true;
  if (!has_thread()) reduce_next(false, true);
  if (queue_->any_under_way()) return false;
  if (ready_->complete()) ready_->begin_round();
  for (int bucket = 0; bucket < tensors_->buckets(); ++bucket) queue_->rethrow(bucket);
  return true;
}

// Every bucket is waited for before the first error is told: their buffers are the caller's again.
void ReductionPlanState::wait_all(std::uint64_t round) {
  require_usable();
  if (round != rounds_) return;
  std::exception_ptr first;
  for (int bucket = 0; bucket < tensors_->buckets(); ++bucket) {
    try {
      wait(bucket, queue_->rounds_of(bucket));
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (!first) ready_->check_complete();
  ready_->begin_round();
  if (first) std::rethrow_exception(first);
}

}  // namespace ropewalk::reduction
