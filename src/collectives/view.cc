#include "collectives/view.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "mpi/datatypes.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::collectives {

View::View(const Elements& elements, const void* data, std::size_t count)
    : elements_(elements), original_(const_cast<void*>(data)), data_(original_) {
  bytes_ = in_bytes(count, "count");
  add(0, count);
  place();
}

View::View(const Elements& elements, const void* data, const std::size_t* counts,
           const std::size_t* displacements, int ranks)
    : elements_(elements), original_(const_cast<void*>(data)), data_(original_) {
  if (counts == nullptr || displacements == nullptr) return;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::size_t bytes = in_bytes(counts[rank], "counts");
    const std::size_t place = in_bytes(displacements[rank], "displacements");
    counts_.push_back(bytes);
    displacements_.push_back(elements_.packed ? bytes_ : place);
    bytes_ += bytes;
    add(displacements[rank], counts[rank]);
  }
  place();
}

View::~View() {
  if (private_copy_) {
    std::free(copy_);
  } else {
    Arena::process().deallocate(copy_);
  }
}

std::size_t View::in_bytes(std::size_t count, const char* argument) const {
  if (elements_.bytes > 0 && count > PTRDIFF_MAX / elements_.bytes) {
    throw Error(ErrorCode::argument,
                std::string(argument) + ": " + std::to_string(count) +
                    " elements are more than memory can hold; pass a smaller count");
  }
  return count * elements_.bytes;
}

void View::add(std::size_t first, std::size_t count) {
  if (elements_.packed && count > 0) blocks_.push_back({first, count});
}

// In the arena, so that the others can reach it; as a private buffer where the arena is full.
void View::allocate_copy(std::size_t bytes) {
  try {
    copy_ = Arena::process().allocate(bytes);
  } catch (const Error&) {
    copy_ = std::malloc(bytes);
    private_copy_ = copy_ != nullptr;
    if (!private_copy_) throw;
  }
}

void View::place() {
  const bool given = original_ != nullptr || elements_.absolute;
  if (!elements_.packed || !given || is_in_place(original_)) {
    blocks_.clear();
    return;
  }
  allocate_copy(std::max<std::size_t>(1, bytes_));
  data_ = copy_;
}

template <class Move>
void View::for_each_block(const Move& move) const {
  auto* packed = static_cast<std::byte*>(copy_);
  for (const Block& block : blocks_) {
    const auto offset = static_cast<std::int64_t>(block.first) * elements_.extent;
    // By number: null and an address is a buffer, too.
    void* const elements = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(original_) +
                                                   static_cast<std::uintptr_t>(offset));
    move(elements, packed, block.count);
    packed += block.count * elements_.bytes;
  }
}

void View::pack() {
  for_each_block([&](void* elements, void* packed, std::size_t count) {
    mpi::pack(elements, count, elements_.type, packed, mpi::comm_self());
  });
}

void View::unpack() {
  for_each_block([&](void* elements, void* packed, std::size_t count) {
    mpi::unpack(packed, elements, count, elements_.type, mpi::comm_self());
  });
}

void View::unpack_only(std::size_t count) {
  if (blocks_.empty()) return;
  blocks_.front().count = std::min(count, blocks_.front().count);
  unpack();
}

}  // namespace ropewalk::collectives
