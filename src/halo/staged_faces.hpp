// Faces in private memory that their sender packs into its arena, from where the receiver takes
// them: where the kernel cannot copy them, or where two copies are faster than the kernel's one.
#pragma once

#include <cstddef>
#include <vector>

#include "halo/facts.hpp"
#include "halo/request.hpp"

namespace ropewalk::halo {

struct StagedFaces {
  static constexpr std::size_t none = SIZE_MAX;

  std::vector<std::size_t> at;  // by number of the direction: place in their memory, or none
  std::size_t bytes = 0;        // of their memory
};

// Returns the staged faces of this rank, which decides for what it sends.
StagedFaces staged_faces(const HaloRequest&, const HaloFacts&);

// A face has two places, which take turns: the sender may pack its next while the receiver still
// reads this one. So far is the second from the first, which both ranks know.
std::size_t turn_bytes(std::size_t face_bytes);

}  // namespace ropewalk::halo
