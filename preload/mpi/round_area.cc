#include "round_area.hpp"

#include <cstring>
#include <mutex>
#include <new>

#include "collectives/state.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::preload {
namespace {

constexpr std::size_t up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Areas of this rank that it has left itself, and others perhaps not yet.
struct LeftAreas {
  struct Area {
    const std::atomic<int>* left;
    int others;
  };
  std::mutex mutex;
  std::vector<Area> areas;
};
LeftAreas& left_areas() {
  static LeftAreas areas;
  return areas;
}

bool follows(const SentBlock& block, const SentBlock& before) noexcept {
  return block.from == before.from && block.bytes == before.bytes;
}

}  // namespace

RoundArea::RoundArea(Collectives& team, std::span<const SentBlock> sent)
    : rank_(team.rank()), areas_(static_cast<std::size_t>(team.size())) {
  give_back_what_all_have_left();
  {
    LeftAreas& left = left_areas();
    const std::lock_guard lock(left.mutex);
    left.areas.reserve(left.areas.size() + 64);  // so that leaving seldom needs memory
  }
  node::Team& node = team.state().backend->engine()->team();
  for (int rank = 0; rank < team.size(); ++rank) {
    peers_.push_back(node.peer(rank).shared_from_this());
  }
  std::vector<PlacedBlock> blocks;
  std::size_t end = sizeof(RoomHeader);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (i > 0 && follows(sent[i], sent[i - 1])) {
      blocks.push_back(blocks.back());
      continue;
    }
    blocks.push_back({end, sent[i].bytes});
    end = up(end + sent[i].bytes, sizeof(RoomHeader));
  }
  AreaHeader header;
  header.blocks = sent.size();
  header.rooms_at = line + up(sent.size() * sizeof(PlacedBlock), line);
  header.room_bytes = up(end, 2 * line);
  void* memory = Arena::process().allocate(header.rooms_at + 2 * header.room_bytes);
  auto* area = new (memory) AreaHeader;
  area->blocks = header.blocks;
  area->rooms_at = header.rooms_at;
  area->room_bytes = header.room_bytes;
  areas_[static_cast<std::size_t>(rank_)] = static_cast<std::byte*>(memory);
  if (!blocks.empty()) {
    std::memcpy(static_cast<std::byte*>(memory) + line, blocks.data(),
                blocks.size() * sizeof(PlacedBlock));
  }
  new (room(rank_, 0)) RoomHeader;
  new (room(rank_, 1)) RoomHeader;
}

RoundArea::~RoundArea() {
  std::byte* own = areas_[static_cast<std::size_t>(rank_)];
  const int others = static_cast<int>(areas_.size()) - 1;
  if (!shared_) {
    Arena::process().deallocate(own);
    return;
  }
  for (std::size_t rank = 0; rank < areas_.size(); ++rank) {
    if (static_cast<int>(rank) == rank_) continue;
    // This release pairs with the acquire below: what this rank has read, it has read before.
    reinterpret_cast<AreaHeader*>(areas_[rank])->left.fetch_add(1, std::memory_order_release);
  }
  try {
    LeftAreas& left = left_areas();
    const std::lock_guard lock(left.mutex);
    left.areas.push_back({&reinterpret_cast<AreaHeader*>(own)->left, others});
  } catch (...) {  // no memory: the area stays until the process ends
  }
  give_back_what_all_have_left();
}

void RoundArea::give_back_what_all_have_left() noexcept {
  LeftAreas& left = left_areas();
  const std::lock_guard lock(left.mutex);
  std::erase_if(left.areas, [](const LeftAreas::Area& area) {
    // This acquire pairs with the release of the ranks that have left.
    if (area.left->load(std::memory_order_acquire) < area.others) return false;
    static_assert(offsetof(AreaHeader, left) == 0);
    Arena::process().deallocate(const_cast<std::atomic<int>*>(area.left));
    return true;
  });
}

std::uint64_t RoundArea::offset() const noexcept {
  return Arena::process().offset(areas_[static_cast<std::size_t>(rank_)]);
}

void RoundArea::connect(std::span<const std::uint64_t> offsets) noexcept {
  for (std::size_t rank = 0; rank < areas_.size(); ++rank) {
    if (static_cast<int>(rank) != rank_) areas_[rank] = peers_[rank]->base + offsets[rank];
  }
}

std::int64_t RoundArea::bytes_of(int rank, std::size_t number) const noexcept {
  if (number >= header(rank).blocks) return -1;
  return static_cast<std::int64_t>(placed(rank, number).bytes);
}

void RoundArea::fill(std::uint64_t round, std::span<const SentBlock> sent) noexcept {
  std::byte* const to = room(rank_, round);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (sent[i].bytes == 0 || (i > 0 && follows(sent[i], sent[i - 1]))) continue;
    std::memcpy(to + placed(rank_, i).at, sent[i].from, sent[i].bytes);
  }
  begin(round);
}

void RoundArea::refuse(std::uint64_t round) noexcept {
  room_header(rank_, round).refused = round;
  begin(round);
}

void RoundArea::begin(std::uint64_t round) noexcept {
  // This release pairs with the acquire in has_begun(): the blocks are there.
  room_header(rank_, round).round.store(round, std::memory_order_release);
}

bool RoundArea::has_begun(int rank, std::uint64_t round) const noexcept {
  // This acquire pairs with the release in begin().
  return room_header(rank, round).round.load(std::memory_order_acquire) == round;
}

bool RoundArea::has_refused(int rank, std::uint64_t round) const noexcept {
  return room_header(rank, round).refused == round;
}

const std::byte* RoundArea::block(int rank, std::size_t number,
                                  std::uint64_t round) const noexcept {
  return room(rank, round) + placed(rank, number).at;
}

}  // namespace ropewalk::preload
