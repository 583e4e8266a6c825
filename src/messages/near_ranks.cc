#include "messages/near_ranks.hpp"

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "mpi/collectively.hpp"
#include "node/peers.hpp"
#include "os/fork.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::messages {
namespace {

// What a rank has left behind, until all others have left it, too.
struct Remaining {
  Board* board;
  int place;
  std::vector<std::shared_ptr<node::Peer>> peers;  // by place
  std::vector<void*> memory;
};

struct Deferred {
  std::mutex mutex;
  std::vector<Remaining> all;
};

// What a parent has left behind is not its child's to give back.
constinit os::PerProcess<Deferred> deferred;

// A process that has ended without leaving looks at nothing either.
bool has_left(const Remaining& rank, int peer) {
  // Pairs with the release in ~NearRanks() of that rank.
  return rank.board->lines()[peer].left.load(std::memory_order_acquire) != 0 ||
         node::is_dead(*rank.peers[static_cast<std::size_t>(peer)]);
}

bool all_have_left(const Remaining& rank) {
  for (int peer = 0; peer < static_cast<int>(rank.peers.size()); ++peer) {
    if (peer != rank.place && !has_left(rank, peer)) return false;
  }
  return true;
}

void reclaim() noexcept {
  Deferred& rest = deferred.get();
  const std::lock_guard lock(rest.mutex);
  std::erase_if(rest.all, [](const Remaining& rank) {
    if (!all_have_left(rank)) return false;
    for (void* memory : rank.memory) Arena::process().deallocate(memory);
    Arena::process().deallocate(rank.board);
    return true;
  });
}

Board* make_board(int ranks) {
  const std::size_t bytes = Board::bytes_for(ranks);
  void* memory = Arena::process().allocate(bytes, node::flag_stride);
  std::memset(memory, 0, bytes);
  auto* board = new (memory) Board;
  for (int rank = 0; rank < ranks; ++rank) new (board->lines() + rank) PeerLine;
  return board;
}

}  // namespace

std::unique_ptr<NearRanks> NearRanks::create(mpi::Comm comm, std::vector<int> ranks, int all,
                                             channel::PeerMemory::Worth worth,
                                             std::string& reason) {
  reclaim();
  auto team = node::Team::create(comm, reason);
  if (team == nullptr) return nullptr;
  std::string attach_reason;
  auto attachments = channel::Attachments::create(*team, attach_reason);
  std::unique_ptr<NearRanks> near(new NearRanks(std::move(team), std::move(ranks), all, worth));
  near->memory_.attach_with(std::move(attachments));
  Board* own = nullptr;
  try {
    mpi::collectively(comm, [&] { own = make_board(near->size()); });
  } catch (...) {  // this rank's own, or that of a rank without room
    if (own != nullptr) Arena::process().deallocate(own);
    throw;
  }
  near->own_ = own;
  std::uint64_t offset = Arena::process().offset(own);
  std::vector<std::uint64_t> offsets(static_cast<std::size_t>(near->size()));
  mpi::all_gather(&offset, offsets.data(), sizeof offset, comm);
  for (int place = 0; place < near->size(); ++place) {
    near->boards_.push_back(
        reinterpret_cast<Board*>(near->base(place) + offsets[static_cast<std::size_t>(place)]));
  }
  return near;
}

NearRanks::NearRanks(std::unique_ptr<node::Team> team, std::vector<int> ranks, int all,
                     channel::PeerMemory::Worth worth)
    : team_(std::move(team)),
      ranks_(std::move(ranks)),
      places_(static_cast<std::size_t>(all), -1),
      memory_(*team_, worth) {
  for (int place = 0; place < team_->size(); ++place) {
    places_[static_cast<std::size_t>(rank_at(place))] = place;
    peers_.push_back(team_->peer(place).shared_from_this());
  }
}

bool NearRanks::is_here() const noexcept { return team_->process_id(place()) == getpid(); }

void NearRanks::keep(void* memory) noexcept {
  try {
    kept_.push_back(memory);
  } catch (const std::bad_alloc&) {  // it stays allocated
  }
}

void NearRanks::throw_dead(int place) const {
  throw Error(ErrorCode::peer_dead,
              "rank " + std::to_string(rank_at(place)) + " (process " +
                  std::to_string(team_->process_id(place)) +
                  ") has died: its channels and windows cannot be used any more; end the job");
}

void NearRanks::explain_refusal(int place) const {
  constexpr int looks = 200;  // one a millisecond: a process that ends gives up its memory first
  for (int look = 0; look < looks; ++look) {
    if (node::is_dead(team_->peer(place))) throw_dead(place);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void NearRanks::end() noexcept {
  if (own_ == nullptr || !is_here()) return;
  own_->ended.store(1, std::memory_order_release);
  team_->waits().wake_sleepers();
}

NearRanks::~NearRanks() {
  if (own_ == nullptr || !is_here()) return;
  for (int peer = 0; peer < static_cast<int>(boards_.size()); ++peer) {
    // The last touch of that rank's memory. Pairs with the acquire in has_left() there.
    if (peer != place()) peer_line(peer).left.store(1, std::memory_order_release);
  }
  if (boards_.empty()) peers_.clear();  // nobody has been told where the board lies
  {
    Deferred& rest = deferred.get();
    const std::lock_guard lock(rest.mutex);
    rest.all.push_back({own_, place(), std::move(peers_), std::move(kept_)});
  }
  reclaim();
}

}  // namespace ropewalk::messages
