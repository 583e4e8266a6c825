#include "shared_area.hpp"

#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "collectives/state.hpp"
#include "node/control.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::preload {
namespace {

// Stands before an area.
struct alignas(node::flag_stride) AreaHeader {
  std::atomic<int> left{0};  // so many of the others will never look at the area again
};

AreaHeader* header_of(std::byte* area) noexcept {
  return reinterpret_cast<AreaHeader*>(area - sizeof(AreaHeader));
}

// Areas of this rank that it has left itself, and others perhaps not yet.
struct LeftAreas {
  struct Area {
    AreaHeader* header;
    int others;
    std::vector<void*> kept;
  };
  std::mutex mutex;
  std::vector<Area> areas;
};
LeftAreas& left_areas() {
  static LeftAreas areas;
  return areas;
}

}  // namespace

SharedArea::SharedArea(Collectives& team, std::size_t bytes)
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
  auto* header = new (Arena::process().allocate(sizeof(AreaHeader) + bytes)) AreaHeader;
  areas_[static_cast<std::size_t>(rank_)] = reinterpret_cast<std::byte*>(header + 1);
}

SharedArea::~SharedArea() {
  if (!shared_) {
    Arena::process().deallocate(header_of(own()));
    return;
  }
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == rank_) continue;
    // This release pairs with the acquire below: what this rank has read, it has read before.
    header_of(of(rank))->left.fetch_add(1, std::memory_order_release);
  }
  try {
    LeftAreas& left = left_areas();
    const std::lock_guard lock(left.mutex);
    left.areas.push_back({header_of(own()), size() - 1, std::move(kept_)});
  } catch (...) {  // no memory: the area stays until the process ends
  }
  give_back_what_all_have_left();
}

void SharedArea::give_back_what_all_have_left() noexcept {
  LeftAreas& left = left_areas();
  const std::lock_guard lock(left.mutex);
  std::erase_if(left.areas, [](const LeftAreas::Area& area) {
    // This acquire pairs with the release of the ranks that have left.
    if (area.header->left.load(std::memory_order_acquire) < area.others) return false;
    for (void* const block : area.kept) Arena::process().deallocate(block);
    Arena::process().deallocate(area.header);
    return true;
  });
}

void SharedArea::keep(void* block) noexcept {
  try {
    kept_.push_back(block);
  } catch (...) {  // no memory: it stays until the process ends
  }
}

std::uint64_t SharedArea::offset() const noexcept { return Arena::process().offset(own()); }

void SharedArea::connect(std::span<const std::uint64_t> offsets) noexcept {
  for (int rank = 0; rank < size(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (rank != rank_) areas_[at] = peers_[at]->base + offsets[at];
  }
}

std::byte* SharedArea::arena(int rank) const noexcept {
  return rank == rank_ ? Arena::process().base() : process(rank).base;
}

}  // namespace ropewalk::preload
