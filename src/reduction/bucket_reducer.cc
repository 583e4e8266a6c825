#include "reduction/bucket_reducer.hpp"

#include <cstdint>
#include <string>

#include "collectives/reductions.hpp"
#include "collectives/state.hpp"
#include "mpi/collectively.hpp"

namespace ropewalk::reduction {

BucketReducer::BucketReducer(mpi::Comm comm, const PlanTensors& tensors,
                             const ReductionPlanOptions& options)
    : tensors_(tensors),
      communicator_(std::make_unique<Collectives>(Communicator(comm.value),
                                                  CollectivesOptions{.threads = options.threads})),
      threads_call_mpi_(mpi::thread_level() == mpi::ThreadLevel::multiple) {
  for (int bucket = 0; bucket < tensors.buckets(); ++bucket) {
    const ElementType type = tensors.bucket(bucket).type;
    Reduction& made = reductions_.emplace_back();
    made.operation = collectives::operation(type, options.op);
    made.operation.number = static_cast<std::uint32_t>(bucket) + 1;
    if (!options.average) continue;
    made.divided_apart = !communicator_->direct();
    made.operation.average = kernels::find_average(type);
    made.operation.divisor = communicator_->size();
  }
}

bool BucketReducer::serves_threads() const noexcept {
  return threads_call_mpi_ || communicator_->nodes() == 1;
}

void BucketReducer::reduce(int bucket, bool by_caller) {
  const std::size_t count = tensors_.bucket(bucket).count;
  if (count == 0) return;
  Collectives::State& state = communicator_->state();
  if (collectives::Engine* engine = state.backend->engine()) {
    engine->team().waits().progress_mpi(by_caller || threads_call_mpi_);
  }
  const PlanTensors::Vector vector = tensors_.pack(bucket);
  check_same_bucket(bucket);
  const auto& [operation, divided_apart] = reductions_[static_cast<std::size_t>(bucket)];
  collectives::allreduce(state, vector.input, vector.output, count,
                         divided_apart ? operation.partial() : operation);
  path_ = communicator_->last_path();
  tensors_.unpack(bucket, operation, divided_apart);
}

void BucketReducer::refuse() noexcept {
  const Collectives::State& state = communicator_->state();
  try {
    state.backend->refuse("plan: ended by an exception on this rank");
  } catch (...) {  // a dead peer: the others see it for themselves
  }
}

// The buckets are compared where nothing else compares them: neither MPI nor ranks of different
// nodes do. It is done on the communicator of the plan, whose waits over nodes notice dead ranks,
// which MPI's own call would not.
void BucketReducer::check_same_bucket(int bucket) {
  if (communicator_->nodes() == 1 || tensors_.buckets() == 1) return;
  mpi::Extremes buckets(bucket);
  communicator_->allreduce(in_place, buckets.values().data(), buckets.values().size(),
                           ElementType::int64, ReductionOp::max);
  if (buckets.same()) return;
  throw Error(ErrorCode::argument,
              "start: ranks have started buckets " + std::to_string(buckets.lowest()) + " to " +
                  std::to_string(buckets.highest()) +
                  " as their next ones; start buckets in the same order on all ranks");
}

}  // namespace ropewalk::reduction
