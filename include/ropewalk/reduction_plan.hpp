// Plans for vectors that are reduced again and again, such as the gradients of data-parallel
// training (Boyle et al. 2017, section IV).
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

// A vector of `count` elements in buffers of the caller. Where `input` is null (or
// ropewalk::in_place) it is reduced in place. Where both are null it lies in memory of the plan,
// see ReductionPlan::data().
struct PlanTensor {
  std::size_t count = 0;
  ElementType type = ElementType::float32;
  const void* input = nullptr;
  void* output = nullptr;
};

struct ReductionPlanOptions {
  ReductionOp op = ReductionOp::sum;
  // Divides the sum by the number of ranks; for floating-point and complex elements. On one node,
  // float16 and bfloat16 are summed and divided in float32 and rounded once. Over several nodes,
  // large vectors are rounded after each node, and divided as the last summand is added.
  bool average = false;
  // Tensors of up to fuse_bytes are fused, by type, into vectors of up to bucket_bytes; others are
  // reduced where they lie. Defaults: docs/how-to/gradient-reduction.md.
  std::size_t bucket_bytes = std::size_t{4} << 20;
  std::size_t fuse_bytes = std::size_t{64} << 10;
  // A thread of the plan reduces the buckets. It needs MPI_THREAD_MULTIPLE where the reduction
  // calls MPI, that is, where the ranks are on several nodes or cannot reach each other's memory;
  // without that level this option is ignored there.
  bool thread = true;
  // How many threads share the arithmetic of large buckets over several nodes, as
  // CollectivesOptions::threads. May differ from rank to rank.
  int threads = 0;
};

namespace reduction {
class ReductionPlanState;
}

// The handle that start() returns; it tells whether a bucket, or the whole plan, is reduced. It may
// be copied and dropped, but not used after the plan has ended. When its bucket has been started
// again, it still tells of the round in which it was made, which is complete.
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

// A plan is made once; start, ready, test, wait and reduce then neither allocate nor free memory.
//
//   ropewalk::ReductionPlan plan(world, {{count, ElementType::float32, nullptr, gradient}, ...},
//                                {.average = true});
//   for (...) {
//     ... plan.ready(i) as the gradient of tensor i becomes ready ...
//     plan.wait();
//   }
//
// Tensors are best listed in the order in which they become ready, which for gradients is the
// reverse of the order of layers: buckets are numbered in the order of their last tensors. All
// ranks start the same buckets in the same order. On one node, a rank that starts another bucket
// makes every rank throw an error that names both. The buffers of a bucket belong to the plan from
// its start until it is complete.
//
// Buckets are reduced one after the other, in the order in which they were started: by a thread of
// the plan, or by the caller in test() and wait(), which takes over buckets that the thread has not
// begun. Sums are combined in the order of ranks, so that all ranks get the same bits.
//
// One thread at a time uses a plan. The wait() or test() of a bucket throws the error that the
// bucket has met. In a child of fork every call throws, and destruction does nothing.
class RW_EXPORT ReductionPlan {
 public:
  // Collective. Throws Error(argument) on every rank when tensors (but for their buffers) or
  // options differ between ranks, or do not fit together. The communicator must outlive the plan.
  ReductionPlan(Communicator, const std::vector<PlanTensor>& tensors,
                const ReductionPlanOptions& = {});
  // Collective. Waits for buckets that were started. While an exception unwinds the stack, it gives
  // up those that have not begun, and the other ranks get an error.
  ~ReductionPlan();
  ReductionPlan(ReductionPlan&&) noexcept;
  ReductionPlan& operator=(ReductionPlan&&) noexcept;

  int rank() const noexcept;
  int size() const noexcept;
  int nodes() const noexcept;                  // see Collectives
  bool direct() const noexcept;                // see Collectives
  const std::string& reason() const noexcept;  // why it is not direct
  bool has_thread() const noexcept;
  Path last_path() const noexcept;  // of the last bucket; for benches and tests

  int tensors() const noexcept;
  int buckets() const noexcept;
  int bucket_of(int tensor) const;
  bool fused(int bucket) const;                // several tensors in one vector
  std::size_t bucket_bytes(int bucket) const;  // of its elements

  // Gives a tensor other buffers, from its next start on; where both are null, it gets memory of
  // the plan. It is not collective.
  void bind(int tensor, const void* input, void* output);
  // Returns the place of a tensor in memory of the plan, zeros at first. What the program writes
  // there is reduced in place, without a copy. Returns null where the tensor is not fused and was
  // given buffers when the plan was made.
  void* data(int tensor) const;
  // Owns the memory that data() shows. It stays where it is as long as a copy of this lives, even
  // when the plan has ended.
  std::shared_ptr<const void> memory() const;

  // Throws Error(argument) when it is under way already.
  PendingReduction start(int bucket);
  // Returns all buckets that are not under way, in their order.
  PendingReduction start();
  // Tells that a tensor is ready. A bucket starts when all its tensors are ready and all buckets
  // before it have been started.
  void ready(int tensor);

  // Returns true when no bucket is under way. In a plan without a thread it reduces the next
  // bucket, and so may wait for the other ranks.
  bool test();
  // Ends a round: waits for all buckets. Throws Error(argument) when ready() was called for some
  // tensors and not for all.
  void wait();
  void reduce();  // start() and wait(), on this thread

 private:
  std::unique_ptr<reduction::ReductionPlanState> state_;
};

}  // namespace ropewalk
