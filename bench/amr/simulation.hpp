// Steps of a program on the mesh: ghosts of all faces, new cells, sums over all ranks, and from
// time to time another mesh, whose blocks are dealt anew.
#pragma once

#include <cstddef>
#include <vector>

#include "amr/blocks.hpp"
#include "amr/mesh.hpp"
#include "amr/ways.hpp"
#include "common/ranks.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::bench {

// Microseconds of this rank.
struct AmrShares {
  double communication = 0;  // messages of faces and of blocks that move
  double reductions = 0;
  double computing = 0;  // cells, packing and unpacking, and the mesh
};

class AmrSimulation {
 public:
  AmrSimulation(const Ranks& ranks, AmrWay& way, int edge, int cells);

  // Each mesh is kept for `steps_each` steps.
  void run(int meshes, int steps_each);
  const AmrShares& shares() const noexcept { return shares_; }
  double checksum() const noexcept { return checksum_; }  // of all ranks; the same on all
  double messages() const noexcept { return messages_; }  // sent by this rank
  double bytes() const noexcept { return bytes_; }        // in these messages
  // What the faces of the mesh at hand lie on before they are sent; null where none are.
  const Buffer<double>& outgoing() const noexcept { return outgoing_; }

 private:
  void plan();
  void step();
  void change(int time);
  void move_blocks(const AmrMesh& after);
  void lap(double& share);
  void send(const double* values, std::size_t count, int to);
  void send_faces();
  void fill_ghosts();

  const Ranks& ranks_;
  AmrWay& way_;
  int edge_;
  AmrMesh mesh_;
  AmrBlocks blocks_;
  std::vector<FaceLink> local_;
  std::vector<FaceLink> sent_;
  std::vector<FaceLink> received_;
  Buffer<double> outgoing_;  // faces one behind the other
  Buffer<double> incoming_;
  std::vector<double> scratch_;
  AmrShares shares_;
  double lap_us_ = 0;
  double checksum_ = 0;
  double messages_ = 0;
  double bytes_ = 0;
};

}  // namespace ropewalk::bench
