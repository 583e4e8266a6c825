// Reductions of the same vectors again and again, as the gradients of data-parallel training
// (Boyle et al. 2017, section IV).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ropewalk/collectives.hpp"
#include "ropewalk/communicator.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/export.hpp"
#include "ropewalk/types.hpp"

namespace ropewalk {

// A vector of `count` elements. Its buffers are the caller's: in place where `input` is null (or
// ropewalk::in_place). Where both are null it lies in memory of the plan, see data().
struct PlanTensor {
  std::size_t count = 0;
  ElementType type = ElementType::float32;
  const void* input = nullptr;
  void* output = nullptr;
};

struct ReductionPlanOptions {
  ReductionOp op = ReductionOp::sum;
  // The sum divided by the number of ranks; of floating-point and complex elements. On one node
  // float16 and bfloat16 are summed and divided in float32 and rounded once; over several nodes
  // large vectors are divided with their last summand, and rounded after each node.
  bool average = false;
  // Tensors of up to fuse_bytes are fused, by type, into vectors of up to bucket_bytes; others are
  // reduced where they lie. Defaults: docs/how-to/gradient-reduction.md.
  std::size_t bucket_bytes = std::size_t{4} << 20;
  std::size_t fuse_bytes = std::size_t{64} << 10;
  // Progress by a thread of the plan. Ignored where the reduction calls MPI, that is, where the
  // ranks are on several nodes or cannot reach each other's memory, below MPI_THREAD_MULTIPLE.
  bool thread = true;
  // As NodeCommunicatorOptions::threads: that share the arithmetic of large buckets over several
  // nodes. May differ from rank to rank.
  int threads = 0;
};

namespace reduction {
class ReductionPlanState;
}

// What start() gives: tells whether a bucket (or the whole plan) is reduced. It may be copied, and
// dropped; it must not be used after the plan. In a later round it says that its own is complete.
class RW_EXPORT PendingReduction {
 public:
  PendingReduction() = default;
  bool test();  // see ReductionPlan::test
  void wait();

 private:
  friend class ReductionPlan;
  PendingReduction(reduction::ReductionPlanState& plan, int bucket, std::uint64_t round)
      : plan_(&plan), bucket_(bucket), round_(round) {}
  reduction::ReductionPlanState* plan_ = nullptr;  // null: complete
  int bucket_ = -1;                                // -1: all that start() started
  std::uint64_t round_ = 0;
};

// Made once; start, ready, test, wait and reduce then allocate nothing. Memory is taken when the
// plan is made and given back when it ends, and no operation does either.
//
//   ropewalk::ReductionPlan plan(world, {{count, ElementType::float32, nullptr, gradient}, ...},
//                                {.average = true});
//   for (...) {
//     ... plan.ready(i) as the gradient of tensor i becomes ready ...
//     plan.wait();
//   }
//
// Tensors are best listed in the order in which they become ready (the reverse of the layers'):
// buckets are numbered in the order in which their last tensor comes. All ranks start the same
// buckets in the same order; on one node a rank that differs is an error on every rank that names
// both buckets. A bucket's buffers belong to the plan from its start until it is complete.
//
// Buckets are reduced one after the other, in the order in which they were started: by a thread of
// the plan, or by the caller in test() and wait(), which takes over what the thread has not begun.
// Sums are combined in the order of ranks, with the same bits on all of them.
//
// One thread at a time uses a plan. An error met on the way comes out of the wait() or test() of
// its bucket. In the child of a fork everything throws; destruction is harmless.
class RW_EXPORT ReductionPlan {
 public:
  // Collective. Error(argument) on every rank when tensors (but for their buffers) or options
  // differ between ranks, or do not fit together. The communicator must outlive the plan.
  ReductionPlan(Communicator, const std::vector<PlanTensor>& tensors,
                const ReductionPlanOptions& = {});
  // Collective. Waits for what was started; while an exception unwinds the stack, what has not
  // begun is given up, and the other ranks get an error.
  ~ReductionPlan();
  ReductionPlan(ReductionPlan&&) noexcept;
  ReductionPlan& operator=(ReductionPlan&&) noexcept;

  int rank() const noexcept;
  int size() const noexcept;
  int nodes() const noexcept;                  // see NodeCommunicator
  bool direct() const noexcept;                // likewise
  const std::string& reason() const noexcept;  // why not
  bool has_thread() const noexcept;
  Path last_path() const noexcept;  // of the last bucket; for benches and tests

  int tensors() const noexcept;
  int buckets() const noexcept;
  int bucket_of(int tensor) const;
  bool fused(int bucket) const;                // several tensors in one vector
  std::size_t bucket_bytes(int bucket) const;  // of its elements

  // Local. Other buffers for a tensor, from its next start on; both null: the plan's own memory.
  void bind(int tensor, const void* input, void* output);
  // Memory of the plan that a tensor lies in, in place: what is written there is not copied. Zeros
  // at first. Null where the tensor is not fused and was given buffers when the plan was made.
  void* data(int tensor) const;

  // Error(argument) when it is under way already.
  PendingReduction start(int bucket);
  // All buckets that are not under way, in their order.
  PendingReduction start();
  // Tells that a tensor is ready. A bucket starts when all its tensors are and all buckets before
  // it have been started.
  void ready(int tensor);

  // True when nothing is under way. Without a thread it reduces the next bucket, and so may wait
  // for the other ranks.
  bool test();
  // Ends a round: waits for all buckets. Error(argument) when ready() was called for some tensors
  // and not for all.
  void wait();
  void reduce();  // start() and wait(), on this thread

 private:
  std::unique_ptr<reduction::ReductionPlanState> state_;
};

}  // namespace ropewalk
