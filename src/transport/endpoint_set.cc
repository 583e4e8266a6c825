// This file is the public face of the room: EndpointSet and MessagePlan over LaneSet and
// MessagePlanState.
#include <string>
#include <utility>

#include "mpi/collectively.hpp"
#include "os/waiting.hpp"
#include "ropewalk/endpoint.hpp"
#include "transport/access.hpp"
#include "transport/lane_set.hpp"
#include "transport/message_plan_state.hpp"

namespace ropewalk {

struct EndpointSet::State : transport::LaneSet {
  using LaneSet::LaneSet;
};

struct MessagePlan::State : transport::MessagePlanState {
  using MessagePlanState::MessagePlanState;
};

namespace {

mpi::Comm lane_communicator(const transport::LaneSet& set, int lane) {
  if (lane < 0 || lane >= set.lanes()) {
    throw Error(ErrorCode::argument, "lane: " + std::to_string(lane) + ", expected 0 to " +
                                         std::to_string(set.lanes() - 1) +
                                         "; make the EndpointSet with more lanes");
  }
  return set.communicators().all()[static_cast<std::size_t>(lane)];
}

void check_call(const transport::LaneSet& set, const char* peer_name, int peer, int tag) {
  set.require_usable();
  if (peer < 0 || peer >= set.size()) {
    throw Error(ErrorCode::argument, std::string(peer_name) + ": " + std::to_string(peer) +
                                         ", expected a rank from 0 to " +
                                         std::to_string(set.size() - 1));
  }
  if (tag < 0 || tag > transport::max_tag) {
    throw Error(ErrorCode::argument, "tag: " + std::to_string(tag) + ", expected 0 to " +
                                         std::to_string(transport::max_tag));
  }
}

// Not MPI_Wait: some MPIs spin in it, on a core that the peer may need.
void complete(transport::LaneSet& set, mpi::Request request, bool receives) {
  os::Waiting wait(os::wait_for_messages);
  while (!wait.poll([&] { return mpi::test(request); })) {
    if (wait.check_due() && set.lost().any()) {
      if (receives) mpi::withdraw(request);
      set.lost().throw_found();
    }
    wait.pause();
  }
}

}  // namespace

EndpointSet::EndpointSet(Communicator communicator, const EndpointOptions& options) {
  const mpi::Comm parent = transport::checked_parent({communicator.handle()});
  mpi::collectively(parent, [&] { state_ = std::make_shared<State>(parent, options); });
}
EndpointSet::~EndpointSet() = default;

std::shared_ptr<transport::LaneSet> transport::Access::lanes(const EndpointSet& endpoints) {
  return endpoints.state_;
}

MessagePlan transport::Access::plan(const EndpointSet& endpoints,
                                    const std::vector<Message>& messages) {
  const std::shared_ptr<LaneSet> set = endpoints.state_;
  const TagSpace& tags = set->tags();
  return MessagePlan(
      std::make_unique<MessagePlan::State>(set, messages, TagLimits{tags.first(), tags.end() - 1}));
}

int EndpointSet::lanes() const noexcept { return state_->lanes(); }
int EndpointSet::rank() const noexcept { return state_->rank(); }
int EndpointSet::size() const noexcept { return state_->size(); }
bool EndpointSet::has_threads() const noexcept { return state_->has_threads(); }

Communicator EndpointSet::communicator(int lane) const {
  return Communicator(lane_communicator(*state_, lane).value);
}

void EndpointSet::send(int lane, const void* data, std::size_t bytes, int destination, int tag) {
  const mpi::Comm comm = lane_communicator(*state_, lane);
  check_call(*state_, "destination", destination, tag);
  complete(*state_, mpi::isend(data, bytes, destination, tag, comm), false);
}

void EndpointSet::receive(int lane, void* data, std::size_t bytes, int source, int tag) {
  const mpi::Comm comm = lane_communicator(*state_, lane);
  check_call(*state_, "source", source, tag);
  complete(*state_, mpi::ireceive(data, bytes, source, tag, comm), true);
}

MessagePlan EndpointSet::plan(std::vector<Message> messages) {
  return MessagePlan(std::make_unique<MessagePlan::State>(state_, messages));
}

MessagePlan::MessagePlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
MessagePlan::MessagePlan(MessagePlan&&) noexcept = default;
MessagePlan& MessagePlan::operator=(MessagePlan&& other) noexcept {
  if (this != &other) {
    const MessagePlan replaced(std::move(*this));  // completes what it had started
    state_ = std::move(other.state_);
  }
  return *this;
}
MessagePlan::~MessagePlan() {
  if (state_) state_->leave();
}

void MessagePlan::start(Strategy strategy) { state_->start(strategy); }
bool MessagePlan::test() { return state_->test(); }
void MessagePlan::wait() { state_->wait(); }
void MessagePlan::cancel() noexcept { state_->cancel(); }
void MessagePlan::exchange_lane(int lane) { state_->exchange_lane(lane); }
int MessagePlan::lanes() const noexcept { return state_->lanes(); }
std::size_t MessagePlan::send_bytes() const noexcept { return state_->send_bytes(); }

}  // namespace ropewalk
