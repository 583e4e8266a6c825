#include "transport/message_plan_state.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "mpi/progress.hpp"
#include "os/waiting.hpp"

namespace ropewalk::transport {
namespace {

// Between two looks at the caller's other MPI traffic, and whether the ranks live (0.1 to 1 us
// each).
constexpr unsigned tests_per_progress = 64;

[[noreturn]] void refuse(const char* argument, std::size_t message, const std::string& text) {
  throw Error(ErrorCode::argument,
              std::string(argument) + ": message " + std::to_string(message) + " has " + text);
}

void check_message(const Message& message, std::size_t index, const LaneSet& set,
                   const TagLimits& tags) {
  if (message.peer < 0 || message.peer >= set.size()) {
    refuse("peer", index,
           std::to_string(message.peer) + ", expected a rank from 0 to " +
               std::to_string(set.size() - 1) + "; leave out messages to no one");
  }
  if (message.tag < tags.least || message.tag > tags.most) {
    refuse("tag", index,
           std::to_string(message.tag) + ", expected " + std::to_string(tags.least) + " to " +
               std::to_string(tags.most));
  }
  if (message.lane < -1 || message.lane >= set.lanes()) {
    refuse("lane", index,
           std::to_string(message.lane) + ", expected 0 to " + std::to_string(set.lanes() - 1) +
               ", or -1 to have it dealt; ask for more lanes if it needs its own");
  }
  if (message.data == nullptr && message.bytes != 0) {
    refuse("data", index, "no address but " + std::to_string(message.bytes) + " bytes");
  }
}

// Batches over runs of parts that agree in `key`; `parts` is sorted by it.
template <class Key, class Make>
void for_each_run(std::span<const Part> parts, Key key, Make make) {
  for (std::size_t begin = 0; begin < parts.size();) {
    std::size_t end = begin;
    while (end < parts.size() && key(parts[end]) == key(parts[begin])) ++end;
    make(begin, end - begin);
    begin = end;
  }
}

}  // namespace

MessagePlanState::MessagePlanState(std::shared_ptr<LaneSet> set, std::span<const Message> messages,
                                   const TagLimits& tags)
    : set_(std::move(set)) {
  std::size_t all_bytes = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    check_message(messages[i], i, *set_, tags);
    if (messages[i].kind == Message::Kind::send) send_bytes_ += messages[i].bytes;
    all_bytes += messages[i].bytes;
  }
  awake_ns_ = os::awake_ns_for(all_bytes);
  by_step_ = parts_of(messages, set_->lanes(), set_->split_bytes(), set_->piece_bytes());
  by_lane_ = by_step_;
  std::stable_sort(by_lane_.begin(), by_lane_.end(),
                   [](const Part& a, const Part& b) { return a.lane < b.lane; });
  requests_.assign(by_step_.size(), mpi::request_null());
  make_steps(set_->communicators().all());
  make_lanes(set_->communicators().all());
}

void MessagePlanState::make_steps(std::span<const mpi::Comm> lanes) {
  const std::span<const Part> parts(by_step_);
  const std::span<mpi::Request> requests(requests_);
  const bool split = set_->communicators().splits_threads();
  all_.emplace_back(parts, lanes, requests, split);
  const auto step = [](const Part& part) { return part.step; };
  for_each_run(parts, step, [&](std::size_t begin, std::size_t count) {
    steps_.emplace_back(parts.subspan(begin, count), lanes, requests.subspan(begin, count), split);
  });
}

void MessagePlanState::make_lanes(std::span<const mpi::Comm> lanes) {
  const std::span<const Part> parts(by_lane_);
  const std::span<mpi::Request> requests(requests_);
  lanes_.reserve(lanes.size());
  std::size_t begin = 0;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    std::size_t end = begin;
    while (end < parts.size() && parts[end].lane == static_cast<int>(lane)) ++end;
    lanes_.emplace_back(
        Batch(parts.subspan(begin, end - begin), lanes, requests.subspan(begin, end - begin)));
    lanes_.back().shared = &shared_;
    lanes_.back().awake_ns = awake_ns_;
    begin = end;
  }
}

void MessagePlanState::check_start(Strategy strategy) const {
  if (started_) {
    throw Error(ErrorCode::argument,
                "start: the plan is under way already; call wait() before the next start()");
  }
  if (strategy == Strategy::threaded && !set_->has_threads()) {
    throw Error(ErrorCode::argument,
                "strategy: threaded, but these endpoints have no comm threads; make them with "
                "EndpointOptions::threads, or use concurrent or sequential");
  }
  if (uses_shared_memory(strategy)) {
    throw Error(ErrorCode::argument,
                std::string("strategy: ") + name(strategy) +
                    ", expected one that sends messages; use concurrent, sequential or threaded, "
                    "or a Halo, which can do without messages");
  }
  set_->require_usable();
  // A message to a rank that is known to have died may end the job: MPICH reports it by
  // MPI_Testall, whose errors go to the handler of MPI_COMM_SELF.
  if (set_->lost().any_dead()) set_->lost().throw_found();
}

void MessagePlanState::start(Strategy strategy) {
  check_start(strategy);
  strategy_ = strategy == Strategy::automatic ? Strategy::concurrent : strategy;
  started_ = true;
  if (strategy_ == Strategy::threaded) {
    start_lanes();
  } else if (strategy_ == Strategy::sequential) {
    step_ = 0;
    if (!steps_.empty()) steps_[0].post();
  } else {
    all_[0].post();
  }
}

void MessagePlanState::start_lanes() noexcept {
  const auto busy = std::count_if(lanes_.begin(), lanes_.end(),
                                  [](const LaneWork& work) { return !work.batch.empty(); });
  shared_.set(static_cast<std::uint32_t>(busy));
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (!lanes_[lane].batch.empty()) set_->push(static_cast<int>(lane), lanes_[lane]);
  }
}

bool MessagePlanState::advance_steps() noexcept {
  while (step_ < steps_.size()) {
    if (!steps_[step_].advance()) return false;
    if (cancelled_ || steps_[step_].failed()) return true;
    if (++step_ < steps_.size()) steps_[step_].post();
  }
  return true;
}

bool MessagePlanState::advance() noexcept {
  if (strategy_ == Strategy::threaded) return shared_.countdown.done();
  return strategy_ == Strategy::sequential ? advance_steps() : all_[0].advance();
}

bool MessagePlanState::test() {
  if (!started_) return true;
  if (!set_->is_here()) set_->require_usable();
  if (!advance()) {
    if (++tests_ % tests_per_progress != 0) return false;
    if (strategy_ == Strategy::threaded) set_->progress();
    if (!hopeless()) return false;
    give_up();
  }
  finish();
  return true;
}

void MessagePlanState::wait() {
  if (!started_) return;
  if (!set_->is_here()) set_->require_usable();
  wait_quietly();
  finish();
}

void MessagePlanState::wait_quietly() noexcept {
  if (strategy_ == Strategy::threaded) return wait_for_lanes();
  os::Waiting wait(os::wait_for_messages, awake_ns_);
  while (!wait.poll([&] { return advance(); })) {
    if (!wait.spins()) mpi::look_also();
    if (wait.check_due() && hopeless()) return give_up();
    wait.pause();
  }
}

// Who has given up waits for those that take what it has sent; the dead do not.
bool MessagePlanState::hopeless() noexcept {
  return cancelled_ ? set_->lost().any_dead() : set_->lost().any();
}

void MessagePlanState::give_up() noexcept {
  if (set_->lost().any_dead()) return abandon();
  // An exception has taken a rank away: it drops what comes, so sends are completed.
  stop();
  abandoned_ = true;
  wait_quietly();
}

// A rank has died: its messages will not come, nor will those of ranks that wait for it.
void MessagePlanState::abandon() noexcept {
  set_->mark_broken();
  abandoned_ = true;
  shared_.abandoned.store(true, std::memory_order_relaxed);
  if (strategy_ == Strategy::threaded) {
    while (!shared_.countdown.done()) shared_.countdown.sleep();
  } else if (strategy_ == Strategy::sequential) {
    if (step_ < steps_.size()) steps_[step_].abandon();
  } else {
    all_[0].abandon();
  }
}

void MessagePlanState::wait_for_lanes() noexcept {
  os::Waiting wait(set_->crowded() ? os::wait_for_lanes_crowded : os::wait_for_lanes);
  while (!shared_.countdown.done()) {
    if (wait.look_due()) wait.poll([&] { set_->progress(); });
    if (wait.check_due() && hopeless()) return give_up();
    wait.pause([&](std::int64_t longest_ns) { shared_.countdown.sleep(longest_ns); });
  }
}

std::exception_ptr MessagePlanState::take_errors() noexcept {
  std::exception_ptr first;
  const auto take = [&first](Batch& batch) {
    std::exception_ptr error = batch.take_error();
    if (!first) first = std::move(error);
  };
  take(all_[0]);
  for (Batch& step : steps_) take(step);
  for (LaneWork& lane : lanes_) take(lane.batch);
  return first;
}

void MessagePlanState::finish() {
  started_ = false;
  const std::exception_ptr error = take_errors();
  if (std::exchange(abandoned_, false)) set_->lost().throw_found();
  if (!error) return;
  set_->mark_broken();
  set_->lost().explain();
  std::rethrow_exception(error);
}

void MessagePlanState::cancel() noexcept {
  if (!started_ || !set_->is_here()) return;
  stop();
  wait_quietly();
  take_errors();
  started_ = false;
}

void MessagePlanState::stop() noexcept {
  set_->mark_broken();
  cancelled_ = true;
  if (strategy_ == Strategy::threaded) {
    shared_.stopping.store(true, std::memory_order_relaxed);
  } else if (strategy_ == Strategy::sequential) {
    if (step_ < steps_.size()) steps_[step_].stop();
  } else {
    all_[0].stop();
  }
}

void MessagePlanState::leave() noexcept {
  if (!started_ || !set_->is_here()) return;
  if (unwinding_) return cancel();
  wait_quietly();
  if (take_errors()) set_->mark_broken();
  started_ = false;
}

void MessagePlanState::exchange_lane(int lane) {
  if (lane < 0 || lane >= set_->lanes()) {
    throw Error(ErrorCode::argument, "lane: " + std::to_string(lane) + ", expected 0 to " +
                                         std::to_string(set_->lanes() - 1) +
                                         "; make as many lanes as threads call this");
  }
  check_start(Strategy::concurrent);
  Batch& batch = lanes_[static_cast<std::size_t>(lane)].batch;
  batch.post();
  os::Waiting wait(os::wait_for_messages, awake_ns_);
  bool given_up = false;
  while (!wait.poll([&] { return batch.advance(); })) {
    if (!wait.spins()) mpi::look_also();
    if (wait.check_due() && (batch.stopping() ? set_->lost().any_dead() : set_->lost().any())) {
      set_->mark_broken();
      given_up = true;
      set_->lost().any_dead() ? batch.abandon() : batch.stop();
    }
    wait.pause();
  }
  if (given_up) set_->lost().throw_found();
  if (const std::exception_ptr error = batch.take_error()) {
    set_->mark_broken();
    set_->lost().explain();
    std::rethrow_exception(error);
  }
}

}  // namespace ropewalk::transport
