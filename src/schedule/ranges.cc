#include "schedule/ranges.hpp"

namespace ropewalk::schedule {
namespace {

constexpr std::uint64_t packed(std::uint64_t begin, std::uint64_t end) noexcept {
  return begin << 32U | end;
}
constexpr std::uint64_t begin_of(std::uint64_t word) noexcept { return word >> 32U; }
constexpr std::uint64_t end_of(std::uint64_t word) noexcept { return word & 0xffffffffU; }
constexpr std::uint64_t blocks_in(std::uint64_t word) noexcept {
  return end_of(word) - begin_of(word);
}

constexpr auto relaxed = std::memory_order_relaxed;

Ranges::Taken block(std::uint64_t number) noexcept {
  return {Ranges::Taken::Kind::block, static_cast<std::uint32_t>(number)};
}

}  // namespace

Ranges::Ranges(int workers, int sharing)
    : workers_(workers),
      sharing_(sharing),
      slots_(std::make_unique<WorkerSlot[]>(static_cast<std::size_t>(workers))) {}

std::uint64_t Ranges::share(int worker) const noexcept {
  const int first = workers_ - sharing_;
  if (worker < first) return packed(0, 0);
  const auto index = static_cast<std::uint64_t>(worker - first);
  const auto count = static_cast<std::uint64_t>(sharing_);
  // Blocks and workers have 32 bits: the product fits.
  return packed(blocks_ * index / count, blocks_ * (index + 1) / count);
}

void Ranges::reset(std::uint64_t blocks) noexcept {
  blocks_ = blocks;
  for (int worker = 0; worker < workers_; ++worker) {
    WorkerSlot& slot = at(worker);
    slot.loop = 0;
    slot.entered = 0;
    slot.range[0].store(share(worker), relaxed);
    slot.ready.store(1, relaxed);
  }
}

Ranges::Taken Ranges::take(int worker) noexcept {
  WorkerSlot& own = at(worker);
  Word& range = own.range[own.loop % 2];
  std::uint64_t seen = range.load(relaxed);
  while (blocks_in(seen) != 0) {
    if (!range.compare_exchange_weak(seen, packed(begin_of(seen) + 1, end_of(seen)), relaxed)) {
      continue;
    }
    ++own.own;
    return block(begin_of(seen));
  }
  return steal(worker);
}

// Takes half of what the fullest range has, rounded up; of one block, that block.
Ranges::Taken Ranges::steal(int worker) noexcept {
  WorkerSlot& own = at(worker);
  for (;;) {
    int absent = -1;
    const Victim victim = largest(worker, absent);
    if (absent >= 0) return {Taken::Kind::absent, static_cast<std::uint32_t>(absent)};
    if (victim.worker < 0) return leave(worker);
    std::uint64_t seen = victim.seen;
    const std::uint64_t end = end_of(seen);
    const std::uint64_t middle = begin_of(seen) + blocks_in(seen) / 2;
    Word& range = at(victim.worker).range[own.loop % 2];
    if (!range.compare_exchange_strong(seen, packed(begin_of(seen), middle), relaxed)) continue;
    if (middle + 1 < end) own.range[own.loop % 2].store(packed(middle + 1, end), relaxed);
    ++own.stolen;
    return block(middle);
  }
}

// Among workers of the same NUMA node first: their iterations lie in the memory at hand.
Ranges::Victim Ranges::largest(int worker, int& absent) noexcept {
  const WorkerSlot& own = at(worker);
  const int place = own.place.load(relaxed);
  Victim near;
  Victim far;
  for (int other = 0; other < workers_; ++other) {
    if (other == worker) continue;
    const WorkerSlot& slot = at(other);
    if (slot.ready.load(relaxed) <= own.loop) absent = other;
    const std::uint64_t seen = slot.range[own.loop % 2].load(relaxed);
    Victim& best = slot.place.load(relaxed) == place ? near : far;
    if (blocks_in(seen) > blocks_in(best.seen)) best = {other, seen};
  }
  return near.worker >= 0 ? near : far;
}

Ranges::Taken Ranges::leave(int worker) noexcept {
  WorkerSlot& own = at(worker);
  ++own.loop;
  own.range[own.loop % 2].store(share(worker), relaxed);
  own.ready.store(own.loop + 1, relaxed);
  return {Taken::Kind::done, 0};
}

bool Ranges::enters(int worker) noexcept {
  WorkerSlot& own = at(worker);
  if (own.entered > own.loop) return false;
  own.entered = own.loop + 1;
  return true;
}

void Ranges::set_place(int worker, int node) noexcept { at(worker).place.store(node, relaxed); }

}  // namespace ropewalk::schedule
