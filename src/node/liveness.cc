#include "node/liveness.hpp"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>

#include "node/node_number.hpp"
#include "os/clock.hpp"
#include "ropewalk/error.hpp"
#include "settings/value.hpp"

namespace ropewalk::node {
namespace {

// In communicators up to this size, every rank is connected to every other.
constexpr int small_ranks = 32;

constexpr std::int64_t between_looks_ns = 1'000'000'000;  // at processes of this node

// The end of a process is known some 0.3 s after it (three refusals), on every rank a moment later.
constexpr std::int64_t explain_ns = 2'000'000'000;
constexpr useconds_t explain_step_us = 2000;

// What every rank tells the others; sent as bytes.
struct Facts {
  enum State : std::uint32_t { fine, off, malformed, alone };
  Contact contact;
  std::uint64_t node = 0;    // equal for ranks of one node
  std::uint64_t number = 0;  // rank 0's counts
  std::uint32_t state = fine;
};

// It is set once a connection of this process could not be made, which is then not tried again.
std::atomic<bool> unreachable{false};

// Gathers the facts of this rank. What throws here becomes a state, since a rank that failed alone
// would leave the others waiting.
Facts own_facts(std::string& error) {
  Facts own;
  try {
    own.contact.process = getpid();
    own.contact.id = random_id();
    own.number = own.contact.id.words[0];
    own.node = std::hash<std::string>{}(node_name());
    if (liveness_timeout_s() == 0) own.state = Facts::off;
  } catch (const Error& what) {
    own.state = Facts::malformed;
    error = what.what();
  }
  if (unreachable) own.state = Facts::alone;
  return own;
}

int first_that(std::span<const Facts> facts, std::uint32_t state) {
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    if (facts[rank].state == state) return static_cast<int>(rank);
  }
  return -1;
}

bool all_usable(std::span<const Facts> facts, const std::string& error, std::string& reason) {
  if (const int rank = first_that(facts, Facts::malformed); rank >= 0) {
    throw Error(
        ErrorCode::argument,
        !error.empty() ? error : "ROPEWALK_TIMEOUT: malformed on rank " + std::to_string(rank));
  }
  if (const int rank = first_that(facts, Facts::off); rank >= 0) {
    reason = "ROPEWALK_TIMEOUT=off on rank " + std::to_string(rank);
    return false;
  }
  if (const int rank = first_that(facts, Facts::alone); rank >= 0) {
    if (reason.empty()) reason = "rank " + std::to_string(rank) + " cannot be reached beside MPI";
    return false;
  }
  return true;
}

bool one_node(std::span<const Facts> facts) {
  return std::ranges::all_of(facts, [&](const Facts& rank) { return rank.node == facts[0].node; });
}

std::string rank_text(int rank, const Contact& contact) {
  return "rank " + std::to_string(rank) + " on node " + contact.host_name + " (process " +
         std::to_string(contact.process) + ")";
}

}  // namespace

int liveness_timeout_s() {
  const settings::Value value = settings::get(settings::Id::timeout);
  return value.is("off") ? 0 : static_cast<int>(value.number);
}

std::unique_ptr<Liveness> Liveness::create(mpi::Comm comm, std::string& reason) {
  std::string error;
  Facts own = own_facts(error);
  gethostname(own.contact.host_name, sizeof own.contact.host_name - 1);
  std::vector<Facts> facts(static_cast<std::size_t>(mpi::size(comm)));
  mpi::all_gather(&own, facts.data(), sizeof own, comm);
  if (!all_usable(facts, error, reason)) return nullptr;
  const bool spans = !one_node(facts);
  FailureDetector* detector = nullptr;
  if (spans) {
    detector = FailureDetector::of_process(liveness_timeout_s(), reason);
    own.state = detector == nullptr ? Facts::alone : Facts::fine;
    if (detector != nullptr) own.contact = detector->own();
    mpi::all_gather(&own, facts.data(), sizeof own, comm);
    if (!all_usable(facts, error, reason)) return nullptr;
  }
  std::unique_ptr<Liveness> made(new Liveness);
  made->detector_ = detector;
  made->number_ = facts[0].number;
  made->rank_ = mpi::rank(comm);
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    made->members_.push_back({facts[rank].contact, {}});
    made->ranks_.emplace_back(facts[rank].contact.id.words, static_cast<int>(rank));
  }
  std::ranges::sort(made->ranks_);
  if (!spans) return made->open_processes(), std::move(made);
  own.state = made->connect(reason) ? Facts::fine : Facts::alone;
  mpi::all_gather(&own, facts.data(), sizeof own, comm);
  if (all_usable(facts, error, reason)) return made;
  unreachable = true;
  return nullptr;
}

void Liveness::open_processes() {
  for (Member& member : members_) {
    if (member.contact.process == getpid()) continue;
    member.life = os::ProcessWatch(member.contact.process);
  }
}

bool Liveness::connect(std::string& reason) {
  const int size = static_cast<int>(members_.size());
  std::vector<FailureDetector::Neighbour> neighbours;
  const auto add = [&](int rank, bool initiates) {
    neighbours.push_back({members_[static_cast<std::size_t>(rank)].contact, initiates});
  };
  const bool all = size <= small_ranks;
  for (int distance = 1; distance <= (all ? size / 2 : size - 1);
       distance = all ? distance + 1 : 2 * distance) {
    add((rank_ + distance) % size, true);
    add((rank_ - distance + size) % size, false);
  }
  const std::string failure = detector_->connect(neighbours);
  if (failure.empty()) return true;
  reason = failure + "; is there a firewall between the nodes?";
  return false;
}

void Liveness::look() {
  if (broken()) throw_lost();
  if (detector_ == nullptr) return look_at_processes();
  detector_->waiting();
  const std::uint32_t news = detector_->news();
  if (news == seen_.load(std::memory_order_relaxed)) return;
  examine();
  seen_.store(news, std::memory_order_relaxed);
}

void Liveness::lost(int rank) {
  const ProcessId& id = members_[static_cast<std::size_t>(rank)].contact.id;
  if (detector_ != nullptr) detector_->tell_ended(id);
  lose({{rank}, 0});
}

void Liveness::look_at_processes() {
  const std::int64_t now = os::steady_ns();
  if (now < next_look_ns_.load(std::memory_order_relaxed)) return;
  next_look_ns_.store(now + between_looks_ns, std::memory_order_relaxed);
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (members_[rank].life.ended()) lost(static_cast<int>(rank));
  }
}

void Liveness::explain() {
  const std::int64_t until = os::steady_ns() + explain_ns;
  do {
    next_look_ns_.store(0, std::memory_order_relaxed);
    look();
    if (detector_ == nullptr) return;  // of this node all is known at once
    usleep(explain_step_us);
  } while (os::steady_ns() < until);
}

std::vector<int> Liveness::ranks_of(std::span<const ProcessId> processes) const {
  std::vector<int> out;
  for (const ProcessId& id : processes) {
    const auto found = std::ranges::lower_bound(ranks_, std::pair(id.words, 0));
    if (found != ranks_.end() && found->first == id.words) out.push_back(found->second);
  }
  std::ranges::sort(out);
  return out;
}

// That a rank has ended is a fact; one that is silent may be cut off from this rank alone. What
// another rank has said comes last, since it names the same ranks, or is the only thing known.
void Liveness::examine() {
  const FailureDetector::Findings found = detector_->find(number_);
  if (const std::vector<int> ended = ranks_of(found.ended); !ended.empty()) lose({ended, 0});
  const auto seconds = static_cast<std::uint32_t>(detector_->timeout_s());
  if (const std::vector<int> silent = ranks_of(found.silent); !silent.empty()) {
    lose({silent, seconds});
  }
  if (!found.broken) return;
  const std::vector<int> told = ranks_of(std::span(&found.broken->subject, 1));
  if (!told.empty()) lose({told, found.broken->seconds});
}

std::string Liveness::text_of(const Lost& lost) const {
  const auto first = static_cast<std::size_t>(lost.ranks.front());
  std::string text = rank_text(lost.ranks.front(), members_[first].contact) + ": ";
  if (lost.seconds == 0) {
    text += "its process has ended";
  } else {
    text += "no answer for " + std::to_string(lost.seconds) +
            " s (ROPEWALK_TIMEOUT), its node is down or cut off";
  }
  if (lost.ranks.size() > 1) {
    text += ", and " + std::to_string(lost.ranks.size() - 1) + " more of " +
            std::to_string(members_.size()) + " ranks";
  }
  return text + "; this communicator cannot be used any more: end the job";
}

void Liveness::lose(const Lost& lost) {
  {
    const std::lock_guard lock(mutex_);
    if (text_.empty()) text_ = text_of(lost);
    broken_.store(true, std::memory_order_release);
  }
  if (detector_ != nullptr) {
    const auto first = static_cast<std::size_t>(lost.ranks.front());
    detector_->tell({number_, members_[first].contact.id, lost.seconds});
  }
  throw_lost();
}

void Liveness::throw_lost() {
  const std::lock_guard lock(mutex_);
  throw Error(ErrorCode::peer_dead, text_);
}

}  // namespace ropewalk::node
