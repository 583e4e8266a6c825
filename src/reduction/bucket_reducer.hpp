// How one bucket of a plan is reduced: by the plan's own node communicator.
#pragma once

#include <memory>
#include <vector>

#include "collectives/operation.hpp"
#include "mpi/mpi.hpp"
#include "reduction/plan_tensors.hpp"
#include "ropewalk/reduction_plan.hpp"

namespace ropewalk::reduction {

class BucketReducer {
 public:
  // Collective over `comm`, which outlives it, as do the tensors.
  BucketReducer(mpi::Comm comm, const PlanTensors& tensors, const ReductionPlanOptions&);

  const Collectives& communicator() const noexcept { return *communicator_; }
  // Whether a thread of the plan may reduce: beside a caller who may call MPI as well.
  bool serves_threads() const noexcept;
  Path last_path() const noexcept { return path_; }

  // The caller calls it, or the plan's thread.
  void reduce(int bucket, bool by_caller);
  // Instead of reduce(), by a rank that an exception takes away: the others get an error.
  void refuse() noexcept;

 private:
  struct Reduction {
    collectives::Operation operation;
    bool divided_apart = false;  // an average that the collective does not make
  };
  void check_same_bucket(int bucket);

  const PlanTensors& tensors_;
  std::unique_ptr<Collectives> communicator_;
  std::vector<Reduction> reductions_;  // one a bucket
  bool threads_call_mpi_;              // any thread may
  Path path_ = Path::none;
};

}  // namespace ropewalk::reduction
