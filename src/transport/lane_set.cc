#include "transport/lane_set.hpp"

#include <algorithm>
#include <string>

#include "mpi/collectively.hpp"
#include "mpi/progress.hpp"
#include "os/clock.hpp"
#include "os/cores.hpp"
#include "topology/adapters.hpp"
#include "transport/farewell.hpp"

namespace ropewalk::transport {
namespace {

// How long ranks wait for each other at the end where an exception takes one of them away: they
// have been told, and come, unless they hang elsewhere.
constexpr std::int64_t farewell_ns = 10'000'000'000;

}  // namespace

mpi::Comm checked_parent(mpi::Comm parent) {
  mpi::require_running(
      "make endpoints between MPI_Init_thread(MPI_THREAD_MULTIPLE) and MPI_Finalize");
  return mpi::usable(parent);
}

LaneSet::LaneSet(mpi::Comm parent, const EndpointOptions& options)
    : parent_(checked_parent(parent)),
      rank_(mpi::rank(parent)),
      size_(mpi::size(parent)),
      communicators_(parent) {
  mpi::meet(parent_);  // what fails before this is none of free_what_all_have()'s
  try {
    mpi::collectively(parent_, [&] {
      const std::vector<int> cores = os::process_cores();
      set_up(agree(parent_, local_facts(options, cores)), cores, options);
      lost_.watch(parent_, communicators_.first());
    });
  } catch (...) {  // on every rank
    threads_.clear();
    communicators_.free_what_all_have();
    throw;
  }
}

void LaneSet::set_up(const Agreement& agreement, std::span<const int> cores,
                     const EndpointOptions& options) {
  split_bytes_ = agreement.split_bytes;
  piece_bytes_ = agreement.piece_bytes;
  nodes_ = NodeNumbers(agreement.nodes, rank_);
  const auto threads_here = static_cast<std::size_t>(1 + (options.threads ? agreement.lanes : 0)) *
                            static_cast<std::size_t>(agreement.neighbours);
  crowded_ = threads_here > cores.size();
  communicators_.duplicate(agreement.lanes);
  if (options.threads) start_threads(agreement, cores, options.pin);
}

void LaneSet::start_threads(const Agreement& agreement, std::span<const int> allowed, bool pin) {
  const bool several = std::ranges::any_of(
      agreement.nodes, [&](int node) { return node != agreement.nodes.front(); });
  const std::vector<int> near =
      pin && several ? topology::cpus_near_adapters() : std::vector<int>{};
  const std::vector<int> cores = with_last(allowed, near);
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
  mpi::Comm team_comm = mpi::comm_null();
  try {
    if (mpi::finalized()) return;
    // With a rank dead, nobody may wait for all.
    const bool together = (team_ && team_->team().waits().broken()) || part();
    if (team_ != nullptr) team_comm = NodeTeam::end(std::move(team_));
    if (!together || lost_.any_dead()) return;  // to free them may be to wait for all, too
  } catch (...) {  // MPI is failing: freeing is all that is left to try
  }
  communicators_.free_all();
  mpi::ScopedComm freed;
  freed.comm = team_comm;
}

// Returns true when all ranks have come to the end.
bool LaneSet::part() {
  // The dead must not be sent anything: MPI may hang in it, or end the job.
  if (lost_.any_dead()) return false;
  const bool thrown{unwinding_};
  if (thrown) tell_others(communicators_.first(), FarewellNotice::leaving);
  const std::int64_t until = os::steady_ns() + farewell_ns;
  const bool together = Farewell(communicators_.all()).wait([&](bool told) {
    const bool hurried = thrown || told || lost_.any_left();
    return lost_.any_dead() || (hurried && os::steady_ns() > until);
  });
  if (!together && !lost_.any_dead()) {
    tell_others(communicators_.first(), FarewellNotice::deserting);
  }
  return together;
}

node::Team* LaneSet::team(std::string& reason) {
  if (!asked_for_team_) {
    mpi::collectively(parent_, [&] { team_ = NodeTeam::create(parent_, nodes_, lost_, no_team_); });
    asked_for_team_ = true;
  }
  reason = no_team_;
  return team_ == nullptr ? nullptr : &team_->team();
}

bool LaneSet::is_here() const noexcept { return fork_.same_process(); }

void LaneSet::require_usable() const {
  if (!is_here()) {
    throw Error(ErrorCode::unsupported,
                "endpoints: made before a fork, and this is the child; exchange in the parent");
  }
  lost_.throw_found();
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
