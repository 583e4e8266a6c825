#include "persistent.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <utility>

#include "collectives/state.hpp"
#include "local_mpi.hpp"
#include "mpi/collectively.hpp"
#include "os/clock.hpp"

namespace ropewalk::preload {
namespace {

// The whole copy is in the arena twice, and every block is copied twice, so that the data of larger
// calls are better left to MPI.
constexpr std::size_t most_sent_bytes = std::size_t{4} << 20;
// Each rank combines the blocks of all ranks by itself. From here on MPI, whose ranks share the
// work, takes less time.
constexpr std::size_t most_combined_bytes = std::size_t{1} << 20;

std::size_t bytes_in(std::span<const SentBlock> sent) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const bool again = i > 0 && sent[i].from == sent[i - 1].from;
    bytes += again ? 0 : sent[i].bytes;
  }
  return bytes;
}

bool is_small(const RoundPlan& plan) {
  if (bytes_in(plan.sent) > most_sent_bytes) return false;
  std::size_t combined = 0;
  for (const RoundPlan::ReceivedBlock& block : plan.received) combined += block.bytes;
  return !plan.operation || combined <= most_combined_bytes;
}

}  // namespace

std::shared_ptr<PersistentCollective> PersistentCollective::agree(Function function,
                                                                  Collectives& team, mpi::Comm comm,
                                                                  std::optional<RoundPlan> plan) {
  std::shared_ptr<PersistentCollective> made;
  std::vector<std::uint64_t> offsets;
  try {
    if (plan && is_small(*plan)) {
      offsets.resize(static_cast<std::size_t>(team.size()));
      made = std::make_shared<PersistentCollective>(function, team, *std::move(plan));
    }
  } catch (...) {  // there is no memory: no rank serves it
    made = nullptr;
  }
  if (!mpi::true_on_all(comm, made != nullptr)) return nullptr;
  const std::uint64_t own = made->area_.offset();
  mpi::all_gather(&own, offsets.data(), sizeof own, comm);
  // The others look at this rank's area until the ranks agree for the second time.
  if (!mpi::true_on_all(comm, made->connect(offsets))) return nullptr;
  made->area_.share();
  return made;
}

PersistentCollective::PersistentCollective(Function function, Collectives& team, RoundPlan plan)
    : function_(function),
      rank_(team.rank()),
      size_(team.size()),
      sent_bytes_(bytes_in(plan.sent)),
      plan_(std::move(plan)),
      area_(team, plan_.sent),
      inputs_(plan_.received.size()) {}

bool PersistentCollective::connect(std::span<const std::uint64_t> offsets) noexcept {
  area_.connect(offsets);
  for (const RoundPlan::ReceivedBlock& block : plan_.received) {
    const std::int64_t sent = area_.bytes_of(block.from, block.number);
    if (sent != static_cast<std::int64_t>(block.bytes)) return false;
  }
  return true;
}

void PersistentCollective::start() noexcept {
  watch_.emplace(function_, sent_bytes_);
  ++round_;
  next_ = 0;
  try {
    if (plan_.packed != nullptr) plan_.packed->pack();
    area_.fill(round_, plan_.sent);
  } catch (...) {  // MPI could not pack
    area_.refuse(round_);
  }
}

bool PersistentCollective::all_have_begun() noexcept {
  while (next_ < size_ && area_.has_begun(next_, round_)) ++next_;
  return next_ == size_;
}

bool PersistentCollective::complete(int& code) noexcept {
  code = 0;
  if (!all_have_begun()) {
    code = code_of_death();
    return code != 0;
  }
  code = judge();
  if (watch_) watch_->served(Path::staged);
  watch_.reset();
  return true;
}

int PersistentCollective::judge() noexcept {
  for (int rank = 0; rank < size_; ++rank) {
    if (!area_.has_refused(rank, round_)) continue;
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(), "rank %d could not pack what it sends", rank);
    return error_code(text.data());
  }
  try {
    receive();
    return 0;
  } catch (const std::exception& error) {
    return error_code(error.what());
  }
}

void PersistentCollective::receive() {
  std::vector<RoundPlan::ReceivedBlock>& blocks = plan_.received;
  if (!plan_.operation) {
    for (const RoundPlan::ReceivedBlock& block : blocks) {
      if (block.bytes == 0) continue;
      std::memcpy(block.to, area_.block(block.from, block.number, round_), block.bytes);
    }
    if (plan_.unpacked != nullptr) plan_.unpacked->unpack();
    return;
  }
  if (blocks.empty() || blocks.front().bytes == 0) return;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    inputs_[i] = area_.block(blocks[i].from, blocks[i].number, round_);
  }
  const std::size_t bytes = blocks.front().bytes;
  void* const to = blocks.front().to;
  if (inputs_.size() == 1) return static_cast<void>(std::memcpy(to, inputs_.front(), bytes));
  plan_.operation->combine({&to, 1}, inputs_, bytes / plan_.operation->element_bytes,
                           kernels::Stores::temporal);
}

// A dead rank is looked for every 5 ms, as in all waits for ranks (os/waiting.hpp).
int PersistentCollective::code_of_death() noexcept {
  constexpr unsigned looks_per_clock = 16;
  constexpr std::int64_t check_ns = 5'000'000;
  if (++looks_ % looks_per_clock != 0) return 0;
  const std::int64_t now = os::steady_ns();
  if (now - looked_ns_ < check_ns) return 0;
  looked_ns_ = now;
  for (int rank = 0; rank < size_; ++rank) {
    const node::Peer& process = area_.process(rank);
    // A rank that has died after its last start has done its part of the round.
    if (rank == rank_ || !node::is_dead(process) || area_.has_begun(rank, round_)) continue;
    std::array<char, 128> text{};
    std::snprintf(text.data(), text.size(),
                  "rank %d (process %d) has died before it started a persistent collective", rank,
                  process.process);
    return error_code(text.data());
  }
  return 0;
}

}  // namespace ropewalk::preload
