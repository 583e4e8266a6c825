#include "halo/plan.hpp"

#include <cstdint>
#include <utility>

#include "halo/candidate.hpp"
#include "transport/access.hpp"

namespace ropewalk::halo {

namespace {

// Which neighbours the messages go to.
enum class Range : std::uint8_t { all, far };

Draft draft(const HaloRequest& request, const HaloFacts& facts, Range range) {
  const Links& links = range == Range::all ? facts.links : facts.far;
  return request.form == Form::fields ? draft_fields(links, request.fields, facts.labels())
                                      : draft_faces(links, request.faces, facts.labels());
}

std::shared_ptr<PlannedMessages> planned(const HaloRequest& request, const HaloFacts& facts,
                                         Draft draft) {
  for (std::vector<kernels::StridedCopy>* copies : {&draft.packs, &draft.unpacks}) {
    *copies = divided(*copies, facts.workers->sharing());
  }
  MessagePlan plan = transport::Access::plan(request.endpoints, draft.messages);
  return std::shared_ptr<PlannedMessages>(
      new PlannedMessages{std::move(draft), facts.workers, std::move(plan)});
}

std::size_t unstaged_bytes(const Draft& draft) {
  std::size_t bytes = 0;
  for (const Message& message : draft.messages) {
    if (!draft.staged(message)) bytes += message.bytes;
  }
  return bytes;
}

// The same messages with memory of the halo's own in place of the caller's, a place for each: sends
// that shared one would come out of the caches, and look faster than they are. Nothing is unpacked.
Draft draft_for_rehearsal(const HaloRequest& request, const HaloFacts& facts, Range range) {
  Draft out = draft(request, facts, range);
  out.unpacks.clear();
  const std::size_t bytes = unstaged_bytes(out);
  if (bytes == 0) return out;
  Buffer<std::byte> places(bytes);
  std::byte* next = places.data();
  for (Message& message : out.messages) {
    if (out.staged(message)) continue;
    message.data = next;
    next += message.bytes;
  }
  out.rehearsed = std::move(places);
  return out;
}

// What candidates of one request share: the messages are the same whoever drives them.
struct SharedMessages {
  Range range;
  std::shared_ptr<PlannedMessages> real;
  std::shared_ptr<PlannedMessages> rehearsed;
};

class PlanCandidate final : public Candidate {
 public:
  PlanCandidate(std::shared_ptr<SharedMessages> shared, Strategy strategy)
      : shared_(std::move(shared)), strategy_(strategy) {}

  bool sends_messages() const noexcept override { return true; }
  std::unique_ptr<Carrier> rehearsal(const HaloRequest& request, const HaloFacts& facts) override {
    if (!shared_->rehearsed) {
      shared_->rehearsed =
          planned(request, facts, draft_for_rehearsal(request, facts, shared_->range));
    }
    return std::make_unique<PlanCarrier>(shared_->rehearsed, strategy_);
  }

  std::unique_ptr<Carrier> make(const HaloRequest& request, const HaloFacts& facts,
                                Places&) override {
    shared_->rehearsed.reset();
    if (!shared_->real) {
      shared_->real = planned(request, facts, draft(request, facts, shared_->range));
    }
    return std::make_unique<PlanCarrier>(shared_->real, strategy_);
  }

 private:
  std::shared_ptr<SharedMessages> shared_;
  Strategy strategy_;
};

}  // namespace

PlanCarrier::PlanCarrier(std::shared_ptr<PlannedMessages> messages, Strategy strategy)
    : messages_(std::move(messages)), strategy_(strategy) {}

void PlanCarrier::start() {
  messages_->workers->run(messages_->draft.packs);
  messages_->plan.start(strategy_);
}

void PlanCarrier::wait() {
  messages_->plan.wait();
  messages_->workers->run(messages_->draft.unpacks);
}

// Comm threads drive the lanes of `threaded` themselves, and packing is work of the whole exchange.
int PlanCarrier::lanes() const noexcept {
  const Draft& draft = messages_->draft;
  const bool packed = !draft.packs.empty() || !draft.unpacks.empty();
  return strategy_ == Strategy::threaded || packed ? 1 : messages_->plan.lanes();
}

// `automatic` does not consider `sequential`, which posts later messages in test() and wait() only:
// a rank that waits would need its neighbours to be there too.
void add_plans(const HaloRequest& request, const HaloFacts& facts, Candidates& candidates) {
  const auto shared = std::make_shared<SharedMessages>(SharedMessages{Range::all, {}, {}});
  const auto add = [&](Strategy strategy) {
    candidates.push_back(std::make_unique<PlanCandidate>(shared, strategy));
  };
  if (!request.automatic()) return add(request.options.strategy);
  add(Strategy::concurrent);
  if (facts.threads) add(Strategy::threaded);
}

std::unique_ptr<Candidate> make_far_plan(Strategy strategy) {
  return std::make_unique<PlanCandidate>(
      std::make_shared<SharedMessages>(SharedMessages{Range::far, {}, {}}), strategy);
}

}  // namespace ropewalk::halo
