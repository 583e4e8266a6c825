// What a ReductionPlan is made of: its tensors in their buckets, the queue of started buckets, the
// way each is reduced, and the thread that does so.
//
// The caller alone starts, binds and waits.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mpi/mpi.hpp"
#include "os/fork.hpp"
#include "reduction/bucket_queue.hpp"
#include "reduction/bucket_reducer.hpp"
#include "reduction/plan_tensors.hpp"
#include "reduction/ready_tensors.hpp"
#include "reduction/reduction_thread.hpp"
#include "ropewalk/detail/unwinding.hpp"
#include "ropewalk/reduction_plan.hpp"

namespace ropewalk::reduction {

// Throws Error where there is no MPI to reduce with, or no communicator.
mpi::Comm checked_parent(mpi::Comm parent);

class ReductionPlanState {
 public:
  // Collective: if one rank cannot get its resources, that is an error on all.
  ReductionPlanState(mpi::Comm parent, const std::vector<PlanTensor>& tensors,
                     const ReductionPlanOptions&);
  ~ReductionPlanState();
  ReductionPlanState(const ReductionPlanState&) = delete;
  ReductionPlanState& operator=(const ReductionPlanState&) = delete;
  bool is_here() const noexcept { return fork_.same_process(); }  // false in the child of a fork

  const PlanTensors& tensors() const noexcept { return *tensors_; }
  const Collectives& communicator() const noexcept { return reducer_->communicator(); }
  bool has_thread() const noexcept { return thread_ != nullptr; }
  Path last_path() const noexcept { return reducer_->last_path(); }

  void bind(int tensor, const void* input, void* output);

  void start(int bucket);
  void start_all();
  void reduce_all();  // start_all and wait, without waking the thread
  void ready(int tensor);
  std::uint64_t round_of(int bucket) const {
    tensors_->bucket(bucket);  // the index is checked
    return queue_->rounds_of(bucket);
  }
  bool test(int bucket, std::uint64_t round);
  void wait(int bucket, std::uint64_t round);
  std::uint64_t rounds() const noexcept { return rounds_; }
  bool test_all(std::uint64_t round);
  void wait_all(std::uint64_t round);

 private:
  void make(const std::vector<PlanTensor>& tensors, const ReductionPlanOptions&);
  void take_down() noexcept;
  void require_usable() const;
  void require_idle(int bucket, const char* call) const;
  void push_idle();
  bool reduce_next(bool wait_for_turn, bool by_caller) noexcept;
  void wake_thread() noexcept {
    if (thread_ != nullptr) thread_->wake();
  }

  mpi::Comm parent_;
  mpi::Comm comm_;  // of our own
  // It is null in a plan that could not be made.
  std::shared_ptr<PlanTensors> tensors_;  // whoever still uses their memory owns them, too
  std::unique_ptr<ReadyTensors> ready_;
  std::unique_ptr<BucketQueue> queue_;
  std::unique_ptr<BucketReducer> reducer_;
  std::unique_ptr<ReductionThread> thread_;
  os::ForkCheck fork_;
  detail::Unwinding unwinding_;
  std::uint64_t rounds_ = 0;  // begun by start_all()
};

}  // namespace ropewalk::reduction
