// This file is the public face of the room: ReductionPlan and PendingReduction over
// ReductionPlanState.
#include "ropewalk/reduction_plan.hpp"

#include "mpi/collectively.hpp"
#include "reduction/reduction_plan_state.hpp"

namespace ropewalk {

bool PendingReduction::test() {
  if (plan_ == nullptr) return true;
  return bucket_ < 0 ? plan_->test_all(round_) : plan_->test(bucket_, round_);
}

void PendingReduction::wait() {
  if (plan_ == nullptr) return;
  if (bucket_ < 0) {
    plan_->wait_all(round_);
  } else {
    plan_->wait(bucket_, round_);
  }
}

ReductionPlan::ReductionPlan(Communicator communicator, const std::vector<PlanTensor>& tensors,
                             const ReductionPlanOptions& options) {
  const mpi::Comm parent = reduction::checked_parent({communicator.handle()});
  mpi::collectively(parent, [&] {
    state_ = std::make_unique<reduction::ReductionPlanState>(parent, tensors, options);
  });
}
ReductionPlan::~ReductionPlan() = default;
ReductionPlan::ReductionPlan(ReductionPlan&&) noexcept = default;
ReductionPlan& ReductionPlan::operator=(ReductionPlan&&) noexcept = default;

int ReductionPlan::rank() const noexcept { return state_->communicator().rank(); }
int ReductionPlan::size() const noexcept { return state_->communicator().size(); }
int ReductionPlan::nodes() const noexcept { return state_->communicator().nodes(); }
bool ReductionPlan::direct() const noexcept { return state_->communicator().direct(); }
const std::string& ReductionPlan::reason() const noexcept {
  return state_->communicator().reason();
}
bool ReductionPlan::has_thread() const noexcept { return state_->has_thread(); }
Path ReductionPlan::last_path() const noexcept { return state_->last_path(); }

int ReductionPlan::tensors() const noexcept { return state_->tensors().size(); }
int ReductionPlan::buckets() const noexcept { return state_->tensors().buckets(); }
int ReductionPlan::bucket_of(int tensor) const { return state_->tensors().bucket_of(tensor); }
bool ReductionPlan::fused(int bucket) const { return state_->tensors().bucket(bucket).fused; }
std::size_t ReductionPlan::bucket_bytes(int bucket) const {
  const reduction::Bucket& found = state_->tensors().bucket(bucket);
  return found.count * size_of(found.type);
}

void ReductionPlan::bind(int tensor, const void* input, void* output) {
  state_->bind(tensor, input, output);
}
void* ReductionPlan::data(int tensor) const { return state_->tensors().memory_of(tensor); }
std::shared_ptr<const void> ReductionPlan::memory() const {
  return state_->tensors().shared_from_this();
}

PendingReduction ReductionPlan::start(int bucket) {
  state_->start(bucket);
  return {*state_, bucket, state_->round_of(bucket)};
}
PendingReduction ReductionPlan::start() {
  state_->start_all();
  return {*state_, -1, state_->rounds()};
}
void ReductionPlan::ready(int tensor) { state_->ready(tensor); }
bool ReductionPlan::test() { return state_->test_all(state_->rounds()); }
void ReductionPlan::wait() { state_->wait_all(state_->rounds()); }
void ReductionPlan::reduce() { state_->reduce_all(); }

}  // namespace ropewalk
