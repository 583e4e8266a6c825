#include "started_round.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <utility>

#include "local_mpi.hpp"
#include "node/peers.hpp"

namespace ropewalk::preload {
namespace {

int code_for(int rank, const char* what) noexcept {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "rank %d %s", rank, what);
  return error_code(text.data());
}

}  // namespace

StartedRound::StartedRound(std::shared_ptr<RoundLog> log, RoundPlan plan, const Watch& watch)
    : log_(std::move(log)), plan_(std::move(plan)), inputs_(plan_.received.size()), watch_(watch) {
  const std::vector<bool> is_source = plan_.sources(log_->memory().size());
  for (std::size_t rank = 0; rank < is_source.size(); ++rank) {
    if (is_source[rank]) sources_.push_back(static_cast<int>(rank));
  }
  for (const SentBlock& block : plan_.sent) sent_bytes_ = std::max(sent_bytes_, block.bytes);
  for (const ReceivedBlock& block : plan_.received) received_bytes_ += block.bytes;
  if (plan_.packed != nullptr) plan_.packed->pack();
}

void StartedRound::begin() noexcept { round_ = log_->begin(plan_.sent); }

bool StartedRound::is_ready() noexcept {
  if (round_ == 0) return true;
  log_->look();  // at those as well that this rank does not wait for, which use their records again
  while (found_ < sources_.size() && log_->has(sources_[found_], round_)) ++found_;
  return found_ == sources_.size() && all_are_near();
}

bool StartedRound::all_are_near() noexcept {
  while (near_ < log_->memory().size() && log_->is_near(near_, round_, sent_bytes_)) ++near_;
  return near_ == log_->memory().size();
}

bool StartedRound::complete(int& code) noexcept {
  const bool ready = is_ready();
  code = round_ == 0 ? code_for(log_->memory().rank(), "has no memory for what it sends")
         : ready     ? receive()
                     : code_of_loss();
  if (!ready && code == 0) return false;
  if (round_ != 0) log_->leave(round_, received_bytes_);
  watch_.served(Path::staged);
  return true;
}

int StartedRound::receive() noexcept {
  const std::vector<ReceivedBlock>& blocks = plan_.received;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].bytes == 0) continue;
    const RoundLog::Found found = log_->find(blocks[i].from, round_, blocks[i].number);
    if (found.data == nullptr || found.bytes != blocks[i].bytes) {
      return code_for(blocks[i].from, "sends other sizes than this rank receives");
    }
    inputs_[i] = found.data;
  }
  try {
    plan_.receive(inputs_);
    return 0;
  } catch (const std::exception& error) {
    return error_code(error.what());
  }
}

int StartedRound::code_of_loss() noexcept {
  if (!look_.is_due()) return 0;
  for (const int rank : sources_) {
    if (log_->has_refused(rank, round_)) return code_for(rank, "had no memory for what it sends");
  }
  for (int rank = 0; rank < log_->memory().size(); ++rank) {
    const bool dead = node::is_dead(log_->memory().process(rank));
    if (dead && !has_done_its_part(rank)) {
      return code_for(rank, "has died before it has started a nonblocking collective");
    }
  }
  return 0;
}

// A rank that has died may have started the round before.
bool StartedRound::has_done_its_part(int rank) noexcept {
  log_->look();
  const bool awaited = std::ranges::find(sources_, rank) != sources_.end();
  return awaited ? log_->has(rank, round_) : log_->is_near(rank, round_, sent_bytes_);
}

}  // namespace ropewalk::preload
