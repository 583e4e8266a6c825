#include "transport/lane_set.hpp"

#include <algorithm>
#include <string>

#include "mpi/attributes.hpp"
#include "mpi/collectively.hpp"
#include "mpi/progress.hpp"
#include "mpi/thread_split.hpp"
#include "os/clock.hpp"
#include "os/cores.hpp"
#include "transport/farewell.hpp"
#include "transport/part.hpp"

namespace ropewalk::transport {
namespace {

// How long ranks wait for each other at the end where an exception takes one of them away: they
// have been told, and come, unless they hang elsewhere.
constexpr std::int64_t farewell_ns = 10'000'000'000;

}  // namespace

mpi::Comm checked_parent(mpi::Comm parent) {
  if (!mpi::initialized() || mpi::finalized()) {
    throw Error(ErrorCode::mpi, std::string("MPI: ") +
                                    (mpi::finalized() ? "already finalised" : "not initialised") +
                                    "; make endpoints between "
                                    "MPI_Init_thread(MPI_THREAD_MULTIPLE) and MPI_Finalize");
  }
  if (parent == mpi::comm_null()) {
    throw Error(ErrorCode::argument,
                "communicator: MPI_COMM_NULL; pass a communicator this rank belongs to");
  }
  return parent;
}

LaneSet::LaneSet(mpi::Comm parent, const EndpointOptions& options)
    : parent_(checked_parent(parent)),
      rank_(mpi::rank(parent)),
      size_(mpi::size(parent)),
      split_bytes_(options.split_bytes) {
  mpi::meet(parent_);  // what fails before this is none of free_what_all_have()'s
  try {
    mpi::collectively(parent_, [&] {
      const std::vector<int> cores = os::process_cores();
      set_up(agree(parent_, local_facts(options, cores)), cores, options);
      liveness_ = node::Liveness::create(parent_, no_liveness_);
    });
  } catch (...) {  // on every rank
    threads_.clear();
    free_what_all_have();
    throw;
  }
}

void LaneSet::set_up(const Agreement& agreement, std::span<const int> cores,
                     const EndpointOptions& options) {
  piece_bytes_ = agreement.piece_bytes;
  const auto threads_here = static_cast<std::size_t>(1 + (options.threads ? agreement.lanes : 0)) *
                            static_cast<std::size_t>(agreement.neighbours);
  crowded_ = threads_here > cores.size();
  duplicate(agreement.lanes);
  make_tags();
  if (options.threads) start_threads(agreement, cores, options.pin);
}

// Above the tags of callers: all that MPI has, which must be 32767 at least, or else those between
// Message::tag and the notices.
void LaneSet::make_tags() {
  constexpr int many = 1 << 17;
  const int most = mpi::tag_upper_bound(communicators_[0]);
  if (most >= many) {
    tags_.emplace(control_tag + 1, most);
  } else {
    tags_.emplace(max_message_tag + 1, notice_tag);
  }
}

// After a joint error. Freeing is collective: a communicator that only some ranks came to have is
// not freed at all.
void LaneSet::free_what_all_have() noexcept {
  try {
    std::int64_t least = lanes();
    mpi::all_reduce(std::span(&least, 1), mpi::Combine::min, parent_);
    communicators_.resize(static_cast<std::size_t>(least));
    free_communicators();
  } catch (...) {  // MPI is failing: nothing else can be done
  }
}

void LaneSet::duplicate(int lanes) {
  const int threads = split_threads();
  splits_threads_ = threads > 1;
  communicators_.reserve(static_cast<std::size_t>(lanes));
  for (int lane = 0; lane < lanes; ++lane) {
    communicators_.push_back(mpi::dup(parent_));
    if (threads > 1) {
      mpi::set_split_number(communicators_.back(), mpi::split_number(lane, threads));
    }
  }
}

// The least of all ranks: a lane has one number everywhere. Collective where the MPI is one that
// splits threads, which is the same MPI on all ranks, though their environments may differ.
int LaneSet::split_threads() const {
  if (!mpi::may_split_threads()) return 0;
  std::vector<std::int64_t> least{mpi::split_threads()};
  mpi::all_reduce(std::span<std::int64_t>(least), mpi::Combine::min, parent_);
  return static_cast<int>(least[0]);
}

void LaneSet::start_threads(const Agreement& agreement, std::span<const int> cores, bool pin) {
  threads_.reserve(static_cast<std::size_t>(agreement.lanes));
  for (int lane = 0; lane < agreement.lanes; ++lane) {
    const std::vector<int> where =
        pin ? cores_of_lane(cores, lane, agreement.lanes, agreement.position, agreement.neighbours)
            : std::vector<int>(cores.begin(), cores.end());
    threads_.push_back(std::make_unique<LaneThread>(lane, where));
  }
}

LaneSet::~LaneSet() {
  if (!is_here()) {
    // The threads are the parent's: joining them would hang, and MPI does not survive a fork.
    for (std::unique_ptr<LaneThread>& thread : threads_) (void)thread.release();
    (void)team_.release();
    return;
  }
  threads_.clear();
  try {
    if (mpi::finalized()) return;
    // With a rank dead, nobody may wait for all.
    const bool together = (team_ && team_->broken()) || part();
    team_.reset();
    if (!together || dead()) return;  // to free them may be to wait for all, too
  } catch (...) {                     // MPI is failing: freeing is all that is left to try
  }
  free_communicators();
}

// True when all ranks have come to the end.
bool LaneSet::part() {
  // The dead must not be sent anything: MPI may hang in it, or end the job.
  if (dead()) return false;
  const bool thrown{unwinding_};
  if (thrown) tell_others(communicators_[0], Notice::leaving);
  const std::int64_t until = os::steady_ns() + farewell_ns;
  const bool together = Farewell(communicators_).wait([&](bool told) {
    const bool hurried = thrown || told || gone_.load(std::memory_order_relaxed) >= 0;
    return dead() || (hurried && os::steady_ns() > until);
  });
  if (!together && !dead()) tell_others(communicators_[0], Notice::deserting);
  return together;
}

void LaneSet::free_communicators() noexcept {
  for (mpi::Comm& communicator : communicators_) {
    try {
      if (communicator != mpi::comm_null()) mpi::free(communicator);
    } catch (...) {  // nothing else can be done about it, nor depends on it
    }
  }
  communicators_.clear();
}

node::Team* LaneSet::team(std::string& reason) {
  if (!asked_for_team_) {
    mpi::collectively(parent_, [&] { team_ = node::Team::create(parent_, no_team_); });
    asked_for_team_ = true;
  }
  reason = no_team_;
  return team_.get();
}

bool LaneSet::dead() noexcept {
  if (liveness_ == nullptr) return false;
  try {
    liveness_->look();
    return false;
  } catch (...) {
    return true;
  }
}

bool LaneSet::lost() noexcept {
  if (dead()) return true;
  try {
    look_for_notices();
  } catch (...) {  // the exchange meets what MPI has to say, too
  }
  return gone_.load(std::memory_order_acquire) >= 0;
}

void LaneSet::look_for_notices() {
  mpi::Status found;
  if (communicators_.empty()) return;
  if (!mpi::iprobe(mpi::any_source(), notice_tag, communicators_[0], found)) return;
  gone_.store(found.source, std::memory_order_release);
}

void LaneSet::require_whole() const {
  if (liveness_ != nullptr) liveness_->require_whole();
  const int rank = gone_.load(std::memory_order_acquire);
  if (rank < 0) return;
  throw Error(ErrorCode::mpi, "endpoints: an exception on rank " + std::to_string(rank) +
                                  " has ended its endpoints, expected its messages; see its error, "
                                  "and make new endpoints on all ranks");
}

void LaneSet::explain() {
  if (liveness_ != nullptr) liveness_->explain();
}

bool LaneSet::is_here() const noexcept { return fork_.same_process(); }

void LaneSet::require_usable() const {
  if (!is_here()) {
    throw Error(ErrorCode::unsupported,
                "endpoints: made before a fork, and this is the child; exchange in the parent");
  }
  require_whole();
  if (broken_.load(std::memory_order_relaxed)) {
    throw Error(ErrorCode::mpi,
                "endpoints: an earlier exchange failed or was cancelled, so messages of it may be "
                "under way; make a new EndpointSet on all ranks");
  }
}

void LaneSet::progress() const noexcept {
  try {
    mpi::progress();
  } catch (...) {  // the plan's own messages tell of errors that matter to it
  }
}

}  // namespace ropewalk::transport
