// How buckets are started, reduced and waited for.
#include <algorithm>
#include <array>
#include <utility>

#include "collectives/reductions.hpp"
#include "collectives/state.hpp"
#include "mpi/progress.hpp"
#include "os/waiting.hpp"
#include "reduction/plan_state.hpp"

namespace ropewalk::reduction {
namespace {

std::string number(int index) { return std::to_string(index); }

}  // namespace

// ---- starting

void PlanState::require_idle(int index, const char* call) const {
  if (!under_way(progress_of(index))) return;
  throw Error(ErrorCode::argument, std::string(call) + ": bucket " + number(index) +
                                       " is under way already; call wait() before");
}

void PlanState::enqueue(int index) noexcept {
  Progress& started = progress_[static_cast<std::size_t>(index)];
  started.error = nullptr;
  ++started.started;
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  queue_[tail % queue_.size()] = index;
  // Release: pairs with the acquire in reduce_next().
  tail_.store(tail + 1, std::memory_order_release);
}

void PlanState::start(int index) {
  require_usable();
  require_idle(index, "start");
  enqueue(index);
  wake();
}

void PlanState::enqueue_idle() {
  require_usable();
  const int first = ready_count_ > 0 ? next_in_order_ : 0;
  int idle = 0;
  for (int index = first; index < buckets(); ++index) {
    if (under_way(progress_of(index))) continue;
    enqueue(index);
    ++idle;
  }
  if (idle == 0 && first < buckets()) {
    throw Error(ErrorCode::argument,
                "start: every bucket is under way already; call wait() before");
  }
  next_in_order_ = buckets();
  ++rounds_;
}

void PlanState::start_all() {
  enqueue_idle();
  wake();
}

void PlanState::reduce_all() {
  enqueue_idle();
  wait_all(rounds_);
}

void PlanState::ready(int index) {
  require_usable();
  Tensor& one = tensor(index);
  if (one.ready) {
    throw Error(ErrorCode::argument,
                "tensor: " + number(index) + " is ready already; call wait() to end the round");
  }
  const std::size_t first = tail_.load(std::memory_order_relaxed);
  one.ready = true;
  ++ready_count_;
  --progress_of(one.bucket).missing;
  while (next_in_order_ < buckets() && progress_of(next_in_order_).missing == 0) {
    require_idle(next_in_order_, "ready");
    enqueue(next_in_order_++);
  }
  if (tail_.load(std::memory_order_relaxed) != first) wake();
}

// ---- reducing

// The next bucket of the queue; false where there is none, or another has the turn.
bool PlanState::reduce_next(bool wait_for_turn, bool by_caller) noexcept {
  std::unique_lock turn(turn_, std::defer_lock);
  if (wait_for_turn) {
    turn.lock();
  } else if (!turn.try_lock()) {
    return false;
  }
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  if (head == tail_.load(std::memory_order_acquire)) return false;
  const int index = queue_[head % queue_.size()];
  Progress& progress = progress_[static_cast<std::size_t>(index)];
  try {
    run(index, by_caller);
  } catch (...) {
    progress.error = std::current_exception();
  }
  head_.store(head + 1, std::memory_order_relaxed);
  complete(progress);
  return true;
}

void PlanState::complete(Progress& progress) noexcept {
  progress.finished.fetch_add(1, std::memory_order_release);
  completions_.advance();
}

void PlanState::run(int index, bool by_caller) {
  const Bucket& bucket = buckets_[static_cast<std::size_t>(index)];
  const Progress& progress = progress_[static_cast<std::size_t>(index)];
  if (bucket.count == 0) return;
  NodeCommunicator::State& state = communicator_->state();
  if (collectives::Engine* engine = state.backend->engine()) {
    engine->team().progress_mpi(by_caller || thread_calls_mpi_);
  }
  const void* send = nullptr;
  void* receive = nullptr;
  if (bucket.fused) {
    pack(bucket);
    send = receive = memory_[static_cast<std::size_t>(index)];
  } else {
    const Tensor& one = tensors_[static_cast<std::size_t>(bucket.pieces[0].tensor)];
    receive = one.output != nullptr ? one.output : one.memory;
    send = one.output != nullptr ? one.input : one.memory;
  }
  agree_on_bucket(index);
  if (progress.divided_apart) {
    collectives::reduce(state, send, receive, bucket.count, progress.operation.partial(), -1);
  } else {
    collectives::reduce(state, send, receive, bucket.count, progress.operation, -1);
  }
  path_ = communicator_->last_path();
  unpack(bucket, progress);
}

// Where nothing else does: neither MPI nor ranks of different nodes compare what they call. By the
// communicator of the plan, whose waits over nodes notice the dead, as MPI's own call would not.
void PlanState::agree_on_bucket(int index) {
  if (communicator_->nodes() == 1 || buckets() == 1) return;
  const std::array<std::int64_t, 2> own{index, -index};
  std::array<std::int64_t, 2> extremes{};
  communicator_->allreduce(own.data(), extremes.data(), own.size(), ElementType::int64,
                           ReductionOp::max);
  if (extremes[0] == -extremes[1]) return;
  throw Error(ErrorCode::argument,
              "start: ranks have started buckets " + std::to_string(-extremes[1]) + " to " +
                  std::to_string(extremes[0]) +
                  " as their next ones; start buckets in the same order on all ranks");
}

void PlanState::pack(const Bucket& bucket) const {
  for (const Piece& piece : bucket.pieces) {
    const Tensor& one = tensors_[static_cast<std::size_t>(piece.tensor)];
    if (one.output == nullptr || one.bytes == 0) continue;
    kernels::copy(one.memory, one.input, one.bytes, kernels::Stores::temporal);
  }
}

// Results to where they belong; averages that are still sums are divided on the way.
void PlanState::unpack(const Bucket& bucket, const Progress& progress) const {
  for (const Piece& piece : bucket.pieces) {
    const Tensor& one = tensors_[static_cast<std::size_t>(piece.tensor)];
    if (one.bytes == 0) continue;
    void* output = one.output != nullptr ? one.output : one.memory;
    const void* result = bucket.fused ? one.memory : output;
    if (progress.divided_apart) {
      progress.operation.average(&output, 1, &result, 1, one.count, progress.operation.divisor,
                                 kernels::Stores::temporal);
    } else if (output != result) {
      kernels::copy(output, result, one.bytes, kernels::Stores::temporal);
    }
  }
}

// ---- waiting

void PlanState::rethrow(Progress& progress) const {
  if (const std::exception_ptr error = std::exchange(progress.error, nullptr)) {
    std::rethrow_exception(error);
  }
}

bool PlanState::test(int index, std::uint64_t round) {
  Progress& progress = progress_of(index);
  require_usable();
  if (progress.started != round) return true;
  if (under_way(progress) && !has_thread()) reduce_next(false, true);
  if (under_way(progress)) return false;
  rethrow(progress);
  return true;
}

void PlanState::wait(int index, std::uint64_t round) {
  Progress& progress = progress_of(index);
  require_usable();
  if (progress.started != round) return;
  os::Waiting wait(os::wait_for_reduction);
  while (under_way(progress)) {
    if (reduce_next(false, true)) {  // what the thread had not begun
      wait.restart();
    } else {
      pause(progress, wait);
    }
  }
  rethrow(progress);
}

// Between two looks whether the thread has done it: this one progresses MPI meanwhile.
void PlanState::pause(const Progress& progress, os::Waiting& wait) {
  if (!wait.spins()) wait.poll(&mpi::progress);
  const std::uint32_t before = completions_.value();
  if (!under_way(progress)) return;
  wait.pause([&](std::int64_t longest_ns) { completions_.sleep(before, longest_ns); });
}

bool PlanState::test_all(std::uint64_t round) {
  require_usable();
  if (round != rounds_) return true;
  if (!has_thread()) reduce_next(false, true);
  if (std::ranges::any_of(progress_, [&](const Progress& one) { return under_way(one); })) {
    return false;
  }
  const bool ended = ready_count_ == 0 || next_in_order_ == buckets();
  if (ended) end_round();
  for (Progress& progress : progress_) rethrow(progress);
  return true;
}

// Every bucket is waited for before the first error is told: their buffers are the caller's again.
void PlanState::wait_all(std::uint64_t round) {
  require_usable();
  if (round != rounds_) return;
  std::exception_ptr first;
  for (int index = 0; index < buckets(); ++index) {
    try {
      wait(index, progress_of(index).started);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (!first) check_round();
  end_round();
  if (first) std::rethrow_exception(first);
}

void PlanState::check_round() const {
  if (ready_count_ == 0 || next_in_order_ == buckets()) return;
  const auto late = std::ranges::find_if(
      tensors_, [&](const Tensor& one) { return !one.ready && one.bucket >= next_in_order_; });
  throw Error(ErrorCode::argument,
              "wait: bucket " + number(next_in_order_) + " was not started, since tensor " +
                  std::to_string(late - tensors_.begin()) +
                  " is not ready; call ready() for it, or start() for what is left");
}

void PlanState::end_round() noexcept {
  next_in_order_ = 0;
  if (ready_count_ == 0) return;
  ready_count_ = 0;
  for (Tensor& one : tensors_) one.ready = false;
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    progress_[b].missing = buckets_[b].pieces.size();
}

}  // namespace ropewalk::reduction
