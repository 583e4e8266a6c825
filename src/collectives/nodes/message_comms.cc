#include "collectives/nodes/message_comms.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "mpi/attributes.hpp"
#include "mpi/collectively.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::collectives::nodes {
namespace {

std::atomic<int> taken{0};  // by all hierarchies of the process

void free_all(std::vector<mpi::Comm>& comms) {
  for (mpi::Comm& comm : comms) {
    if (comm != mpi::comm_null()) mpi::free(comm);
  }
}

}  // namespace

MessageComms::MessageComms(mpi::Comm all) {
  auto record =
      std::make_unique<Record>(Record{.all = all, .leaders = {}, .lanes = {}, .process = getpid()});
  mpi::Keyval keyval = mpi::create_keyval(&MessageComms::release);
  mpi::set_attribute(mpi::comm_self(), keyval, record.get());
  record_ = record.release();
  keyval_ = keyval.value;
  taken.fetch_add(1, std::memory_order_relaxed);
}

MessageComms::~MessageComms() {
  if (!is_here()) return;
  const bool stays = record_->abandoned && !record_->ended;
  record_->orphaned = stays;
  mpi::Keyval keyval{keyval_};
  try {
    if (!record_->ended && !stays) mpi::delete_attribute(mpi::comm_self(), keyval);
    if (!mpi::finalized()) mpi::free_keyval(keyval);
  } catch (const std::exception&) {
    // The MPI is on its way out.
  }
  if (!stays) delete record_;
}

// When MPI_Finalize begins, or when the hierarchy ends.
void MessageComms::release(void* value) noexcept {
  auto* record = static_cast<Record*>(value);
  record->ended = true;
  taken.fetch_sub(record->taken, std::memory_order_relaxed);
  if (record->settle != nullptr) record->settle(record->settler);
  try {
    if (!record->abandoned) {
      mpi::free(record->all);
      free_all(record->leaders);
      free_all(record->lanes);
    }
  } catch (const std::exception&) {
    // Nothing is left to do with it.
  }
  if (record->orphaned) delete record;
}

bool MessageComms::is_here() const noexcept { return record_->process == getpid(); }

bool MessageComms::may_take(int more) noexcept {
  return taken.load(std::memory_order_relaxed) + more <= most_taken;
}

bool MessageComms::may_all_take(int more) const { return mpi::true_on_all(all(), may_take(more)); }

void MessageComms::count_taken(int more) noexcept {
  record_->taken += more;
  taken.fetch_add(more, std::memory_order_relaxed);
}

// In rounds: as many slices as the smallest node has ranks have leaders that are all different.
void MessageComms::split_leaders(const NodeLayout& layout, int slices) {
  const int each = layout.least;
  const int ranks = static_cast<int>(layout.own().size());
  const int rounds = (slices + each - 1) / each;
  std::vector<mpi::Comm> leaders(static_cast<std::size_t>(slices), mpi::comm_null());
  bool done = may_all_take(rounds);
  for (int first = 0; done && first < slices; first += each) {
    const int slice = first + (layout.place() - first % ranks + ranks) % ranks;
    const bool leads = slice < std::min(first + each, slices);
    mpi::Comm made;
    done = mpi::try_split(all(), leads ? slice : mpi::undefined(), layout.node, made);
    if (done && leads) leaders[static_cast<std::size_t>(slice)] = made;
  }
  if (!done) return free_all(leaders);
  record_->leaders = std::move(leaders);
  count_taken(rounds);
}

void MessageComms::split_lanes(int lanes, int rank) {
  const int more = lanes - 1;
  if (more == 0) return;
  std::vector<mpi::Comm> made;
  made.reserve(static_cast<std::size_t>(more));
  bool done = may_all_take(more);
  for (int lane = 0; done && lane < more; ++lane) {
    mpi::Comm comm;
    done = mpi::try_split(all(), 0, rank, comm);
    if (done) made.push_back(comm);
  }
  if (!done) return free_all(made);
  record_->lanes = std::move(made);
  count_taken(more);
}

}  // namespace ropewalk::collectives::nodes
