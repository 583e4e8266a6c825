// This file says where the flags of a halo come from and go to.
#include "halo/flags.hpp"

#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "ropewalk/memory.hpp"

namespace ropewalk::halo {

namespace {

// These are blocks whose halos are gone, and whose neighbours may not have noticed that all was
// copied.
struct Retired {
  FlagBlock block;
  std::uint64_t exchange;
};
struct Retirement {
  std::mutex mutex;
  std::vector<Retired> blocks;
};

// There is one for all halos of the process. It is never destroyed, because halos may end after
// static destructors have run. A child of fork leaves it alone (~DirectCarrier).
Retirement& retirement() {
  static auto* instance = new Retirement;
  return *instance;
}

void give_back_what_all_have_left() {
  Retirement& others = retirement();
  const std::lock_guard lock(others.mutex);
  std::erase_if(others.blocks, [](const Retired& old) { return old.block.all_left(old.exchange); });
}

}  // namespace

FlagBlock::FlagBlock(int directions, std::size_t face_bytes) : directions_(directions) {
  const auto count = 1 + 3 * static_cast<std::size_t>(directions);
  if (face_bytes > SIZE_MAX / 2) {
    throw Error(ErrorCode::memory, "faces: their bytes overflow; send less at a time");
  }
  give_back_what_all_have_left();
  void* memory =
      Arena::process().allocate(count * sizeof(FlagLine) + face_bytes, alignof(FlagLine));
  lines_ = static_cast<FlagLine*>(memory);
  for (std::size_t i = 0; i < count; ++i) new (lines_ + i) FlagLine;
  if (face_bytes > 0) std::memset(faces(), 0, face_bytes);
  for (int d = 0; d < directions; ++d) {  // where nobody is, nobody stays
    left_of(block(), d).number.store(withdrawn, std::memory_order_relaxed);
  }
}

FlagBlock::FlagBlock(FlagBlock&& other) noexcept
    : lines_(std::exchange(other.lines_, nullptr)), directions_(other.directions_) {}

FlagBlock& FlagBlock::operator=(FlagBlock&& other) noexcept {
  std::swap(lines_, other.lines_);
  std::swap(directions_, other.directions_);
  return *this;
}

FlagBlock::~FlagBlock() {
  if (lines_ != nullptr) Arena::process().deallocate(lines_);
}

std::size_t FlagBlock::offset() const noexcept { return Arena::process().offset(lines_); }

void FlagBlock::expect(int direction) const noexcept {
  left_of(block(), direction).number.store(0, std::memory_order_relaxed);
}

bool FlagBlock::all_left(std::uint64_t exchange) const noexcept {
  for (int d = 0; d < directions_; ++d) {
    // Pairs with the release in DirectCarrier::finish() of the neighbour, which looks no more.
    if (left_of(block(), d).number.load(std::memory_order_acquire) < exchange) return false;
  }
  return true;
}

void FlagBlock::retire(std::uint64_t exchange) noexcept {
  if (lines_ == nullptr) return;
  try {
    give_back_what_all_have_left();
    if (all_left(exchange)) return;
    Retirement& others = retirement();
    const std::lock_guard lock(others.mutex);
    others.blocks.push_back({std::move(*this), exchange});
  } catch (...) {  // out of memory: the block is lost, and nobody is harmed
    abandon();
  }
}

}  // namespace ropewalk::halo
