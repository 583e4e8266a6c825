// The arguments of a movement whose blocks have types of their own, from MPI's to the collectives'.
#pragma once

#include <cstddef>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

#include "collectives/pattern.hpp"
#include "datatypes.hpp"
#include "mpi/library.hpp"

namespace ropewalk::preload {

// One handle of an array of the MPI's: of ints where its handles are ints.
inline Word handle_in(const void* handles, std::size_t index) {
  const std::size_t bytes = mpi::library().abi.int_handles ? sizeof(int) : sizeof(Word);
  Word handle = 0;
  std::memcpy(&handle, static_cast<const std::byte*>(handles) + index * bytes, bytes);
  return handle;
}

class TypedSides {
 public:
  // `takes_part(k)`: block k is sent or received; the numbers of others mean nothing.
  // Displacements are in bytes.
  template <class Number, class Place, class TakesPart>
  TypedSides(const void* data, const Number* counts, const Place* displacements, const void* types,
             std::size_t blocks, TakesPart takes_part)
      : usable_(blocks == 0 ||
                (counts != nullptr && displacements != nullptr && types != nullptr)) {
    parts_.resize(usable_ ? blocks : 0);
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      if (!takes_part(k) || counts[k] == 0) continue;
      if (counts[k] < 0 || !add(k, handle_in(types, k))) {
        usable_ = false;
        return;
      }
      const auto place = static_cast<std::int64_t>(displacements[k]);
      parts_[k].data = reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(data) +
                                                     static_cast<std::uintptr_t>(place));
      parts_[k].count = static_cast<std::size_t>(counts[k]);
      parts_[k].absolute = data == nullptr;
    }
  }
  template <class Number, class Place>
  TypedSides(const void* data, const Number* counts, const Place* displacements, const void* types,
             int ranks)
      : TypedSides(data, counts, displacements, types, static_cast<std::size_t>(ranks),
                   [](std::size_t) { return true; }) {}
  TypedSides(const TypedSides&) = delete;
  TypedSides& operator=(const TypedSides&) = delete;

  // False where MPI must judge the arguments.
  bool usable() const noexcept { return usable_; }
  std::span<const collectives::TypedPart> parts() const noexcept { return parts_; }

 private:
  bool add(std::size_t part, Word type) {
    KeptPattern pattern = pattern_of(type);
    if (pattern == nullptr) return false;
    parts_[part].pattern = pattern.get();
    if (!pattern->known) held_.emplace_back().hold(pattern->type);  // MPI packs it, to the end
    patterns_.push_back(std::move(pattern));
    return true;
  }

  bool usable_;
  std::vector<collectives::TypedPart> parts_;
  std::vector<KeptPattern> patterns_;
  std::deque<HeldType> held_;
};

}  // namespace ropewalk::preload
