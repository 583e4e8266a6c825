#include "halo/mixed.hpp"

#include <algorithm>
#include <utility>

#include "halo/candidate.hpp"
#include "mpi/progress.hpp"
#include "os/waiting.hpp"

namespace ropewalk::halo {

namespace {

// How this rank drives its messages, which is its own affair: they are the same for all strategies.
// Comm threads send while the rank copies, but not where they want its core.
Strategy messages_of(const HaloFacts& facts) {
  const bool threads = facts.lane_set->has_threads() && !facts.lane_set->crowded();
  return threads ? Strategy::threaded : Strategy::concurrent;
}

class MixedCandidate final : public Candidate {
 public:
  MixedCandidate(std::unique_ptr<Candidate> near, Strategy messages)
      : near_(std::move(near)), far_(make_far_plan(messages)), messages_(messages) {}

  OwnFaces own_faces() const noexcept override {
    return std::max(near_->own_faces(), OwnFaces::leaving);
  }
  bool sends_messages() const noexcept override { return true; }
  void show(const HaloRequest& request, HaloFacts& facts) override { near_->show(request, facts); }
  std::optional<Error> refusal(const HaloRequest& request, const HaloFacts& facts) const override {
    return near_->refusal(request, facts);
  }
  std::unique_ptr<Carrier> rehearsal(const HaloRequest& request, const HaloFacts& facts) override {
    return joined(near_->rehearsal(request, facts), far_->rehearsal(request, facts));
  }
  std::unique_ptr<Carrier> make(const HaloRequest& request, const HaloFacts& facts,
                                Places& places) override;

 private:
  std::unique_ptr<Carrier> joined(std::unique_ptr<Carrier> near,
                                  std::unique_ptr<Carrier> far) const {
    return std::make_unique<MixedCarrier>(std::move(near), std::move(far),
                                          messages_ != Strategy::threaded);
  }

  std::unique_ptr<Candidate> near_;
  std::unique_ptr<Candidate> far_;
  Strategy messages_;
};

// Faces of messages have one place, which serves both turns: what was sent from it has left when
// the next is written, and what came is read before the next exchange starts.
void add_far_places(const HaloRequest& request, const HaloFacts& facts, Places& places) {
  for (const Link& link : facts.far.present) {
    const std::size_t i = face_index(link.offset);
    for (std::size_t turn = 0; turn < 2; ++turn) {
      // This is the halo's own memory, const only in the interface that takes it from a caller.
      places.send[turn][i] = const_cast<void*>(request.faces.send[i]);
      places.receive[turn][i] = request.faces.receive[i];
    }
  }
}

std::unique_ptr<Carrier> MixedCandidate::make(const HaloRequest& request, const HaloFacts& facts,
                                              Places& places) {
  std::unique_ptr<Carrier> near = near_->make(request, facts, places);
  if (near_->own_faces() == OwnFaces::none) add_far_places(request, facts, places);
  return joined(std::move(near), far_->make(request, facts, places));
}

}  // namespace

MixedCarrier::MixedCarrier(std::unique_ptr<Carrier> near, std::unique_ptr<Carrier> far,
                           bool caller_drives)
    : far_(std::move(far)), near_(std::move(near)), caller_drives_(caller_drives) {}

template <class Body>
void MixedCarrier::together(Body&& body) {
  try {
    body();
  } catch (...) {
    give_up();
    throw;
  }
}

// Neighbours on the node hear of it first: what is under way between nodes may take time to end.
void MixedCarrier::give_up() noexcept {
  near_->give_up();
  far_->give_up();
}

void MixedCarrier::start() {
  far_there_ = false;
  near_there_ = false;
  together([this] {
    far_->start();
    near_->start();
  });
}

bool MixedCarrier::test() {
  together([this] {
    far_there_ = far_there_ || far_->test();
    near_there_ = near_there_ || near_->test();
  });
  return far_there_ && near_there_;
}

// Until one of the two is complete, and the other can wait by itself.
void MixedCarrier::poll_both() {
  os::Waiting wait(os::wait_for_messages, os::awake_ns_for(far_->send_bytes()));
  const auto look = [this] {
    far_there_ = far_there_ || far_->test();
    near_there_ = near_there_ || near_->poll();
    return far_there_ || near_there_;
  };
  while (!wait.poll(look)) {
    if (!wait.spins()) mpi::look_also();
    wait.pause();
  }
}

void MixedCarrier::wait() {
  together([this] {
    if (caller_drives_) poll_both();
    near_->wait();
    far_->wait();
  });
}

void add_for_node(const HaloFacts& facts, std::unique_ptr<Candidate> near, Candidates& candidates) {
  if (facts.several) near = std::make_unique<MixedCandidate>(std::move(near), messages_of(facts));
  candidates.push_back(std::move(near));
}

}  // namespace ropewalk::halo
