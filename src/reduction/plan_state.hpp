// What a ReductionPlan is made of: its buckets with their memory, the queue of started ones, and
// how one is reduced.
//
// The caller alone starts, binds and waits. Buckets in the queue are reduced by whoever holds
// `turn_`: the plan's thread, or the caller who waits. A bucket's data go from the caller to that
// one by the release of `tail_`, and back by the release of its `finished`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collectives/engine.hpp"
#include "mpi/mpi.hpp"
#include "os/epoch.hpp"
#include "os/fork.hpp"
#include "os/waiting.hpp"
#include "reduction/buckets.hpp"
#include "reduction/worker.hpp"
#include "ropewalk/reduction_plan.hpp"

namespace ropewalk::reduction {

// Error where there is no MPI to reduce with, or no communicator.
mpi::Comm checked_parent(mpi::Comm parent);

class PlanState {
 public:
  // Collective: what one rank cannot have is an error on all.
  PlanState(mpi::Comm parent, std::vector<PlanTensor> tensors, const ReductionPlanOptions&);
  ~PlanState();
  PlanState(const PlanState&) = delete;
  PlanState& operator=(const PlanState&) = delete;
  bool is_here() const noexcept;  // false in the child of a fork

  const NodeCommunicator& communicator() const noexcept { return *communicator_; }
  bool has_thread() const noexcept { return worker_ != nullptr; }
  int tensors() const noexcept { return static_cast<int>(tensors_.size()); }
  int buckets() const noexcept { return static_cast<int>(buckets_.size()); }
  const Bucket& bucket(int index) const;
  int bucket_of(int tensor) const;
  Path last_path() const noexcept { return path_; }

  void bind(int tensor, const void* input, void* output);
  void* data(int tensor) const;

  void start(int bucket);
  void start_all();
  void reduce_all();  // start_all and wait, without waking the thread
  void ready(int tensor);
  std::uint64_t round_of(int bucket) const { return progress_of(bucket).started; }
  bool test(int bucket, std::uint64_t round);
  void wait(int bucket, std::uint64_t round);
  std::uint64_t rounds() const noexcept { return rounds_; }
  bool test_all(std::uint64_t round);
  void wait_all(std::uint64_t round);

 private:
  struct Tensor {
    std::size_t count;
    std::size_t bytes;
    const void* input;  // what the caller bound
    void* output;       // null: the plan's memory
    std::byte* memory;  // of the plan; null for none
    int bucket = 0;
    bool ready = false;  // in this round
  };
  // One a bucket; the address is fixed.
  struct Progress {
    std::uint64_t started = 0;               // rounds, counted by the caller
    std::atomic<std::uint64_t> finished{0};  // rounds, by whoever reduced it
    std::exception_ptr error;                // of the last round, until it is rethrown
    std::size_t missing = 0;                 // tensors that are not ready yet
    collectives::Operation operation;
    bool divided_apart = false;  // an average that the collective does not make
  };

  void make(const ReductionPlanOptions&);
  void set_up(const ReductionPlanOptions&);
  void take_down() noexcept;
  void check_jointly(const ReductionPlanOptions&);
  void take_memory();
  void require_usable() const;
  Tensor& tensor(int index);
  const Tensor& tensor(int index) const;
  Progress& progress_of(int bucket);
  const Progress& progress_of(int bucket) const;

  bool under_way(const Progress& progress) const noexcept {
    // Pairs with the release in reduce_next().
    return progress.finished.load(std::memory_order_acquire) != progress.started;
  }
  void require_idle(int bucket, const char* call) const;
  void enqueue(int bucket) noexcept;
  void enqueue_idle();
  void wake() noexcept {
    if (worker_ != nullptr) worker_->wake();
  }
  bool reduce_next(bool wait_for_turn, bool by_caller) noexcept;
  void run(int bucket, bool by_caller);
  void agree_on_bucket(int bucket);
  void pack(const Bucket& bucket) const;
  void unpack(const Bucket& bucket, const Progress& progress) const;
  void complete(Progress& progress) noexcept;
  void pause(const Progress& progress, os::Waiting& wait);
  void rethrow(Progress& progress) const;
  void check_round() const;
  void end_round() noexcept;
  void give_up() noexcept;

  mpi::Comm parent_;
  mpi::Comm comm_;  // of our own
  std::vector<PlanTensor> given_;
  std::vector<Bucket> buckets_;
  std::vector<Tensor> tensors_;
  std::vector<Progress> progress_;
  std::vector<std::byte*> memory_;  // one block a bucket, of the arena; null for none
  std::unique_ptr<NodeCommunicator> communicator_;
  std::unique_ptr<Worker> worker_;
  bool thread_calls_mpi_ = true;  // the thread may
  Path path_ = Path::none;
  os::ForkCheck fork_;
  int exceptions_before_;

  int next_in_order_ = 0;     // of ready(): buckets before it have been started in this round
  int ready_count_ = 0;       // tensors that are, in this round
  std::uint64_t rounds_ = 0;  // begun by start_all()

  // A bucket is in it at most once: it never overflows.
  std::vector<int> queue_;
  std::atomic<std::uint64_t> tail_{0};  // written by the caller
  std::atomic<std::uint64_t> head_{0};  // written under turn_
  std::mutex turn_;
  os::Epoch completions_{os::wait_for_reduction};  // for a caller who waits for the thread
};

}  // namespace ropewalk::reduction
