// A cube of blocks of which those on the surface of a moving sphere are refined once, and the faces
// between them. Every rank knows all of it.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace ropewalk::bench {

// A block is a coarse one with child 0, or one of the eight parts of a refined one.
struct MeshBlock {
  int base = 0;
  int child = 0;
  friend bool operator<(const MeshBlock& one, const MeshBlock& other) {
    return std::pair(one.base, one.child) < std::pair(other.base, other.child);
  }
};

// The ghosts of `to` on one side come from the cells of `from` next to them.
struct FaceLink {
  enum class Kind { equal, to_coarse, to_fine };
  MeshBlock from;
  MeshBlock to;
  int dimension = 0;
  bool above = false;  // the ghosts are those beyond the last cell
  Kind kind = Kind::equal;
  std::array<int, 2> quarter{};  // of the coarse face, where the two differ
};

class AmrMesh {
 public:
  // `edge` coarse blocks along each dimension, dealt to so many ranks. The sphere moves by `time`.
  AmrMesh(int edge, int ranks, int time);

  int bases() const noexcept { return edge_ * edge_ * edge_; }
  bool is_refined(int base) const { return refined_[static_cast<std::size_t>(base)]; }
  int owner(int base) const { return owners_[static_cast<std::size_t>(base)]; }
  std::vector<MeshBlock> blocks_of(int base) const;
  // In the same order on all ranks.
  std::vector<FaceLink> links() const;

 private:
  using Place = std::array<int, 3>;
  Place place(int base) const;
  int beside(int base, int dimension, bool above) const;  // -1: none
  bool is_crossed(int base, double time) const;
  void deal(int ranks);
  void link(const MeshBlock& to, int dimension, bool above, std::vector<FaceLink>& links) const;

  int edge_;
  std::vector<bool> refined_;
  std::vector<int> owners_;
};

}  // namespace ropewalk::bench
