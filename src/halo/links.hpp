// The directions of a grid, with the same numbers on every rank, and the neighbours of this rank in
// them.
#pragma once

#include <string>
#include <vector>

#include "ropewalk/halo.hpp"

namespace ropewalk::halo {

// A link leads to a neighbour of this rank at `offset`, and has the numbers that tell its messages
// apart. The rank alone does not tell them apart: on a periodic extent of 2 the same rank is the
// neighbour on both sides.
struct Link {
  std::vector<int> offset;  // -1, 0 or 1 for each dimension
  int peer;
  bool to_itself;  // the neighbour is this rank: its faces are copied, and no carrier is needed
  int towards;     // number of this direction: of the messages sent over this link
  int from;        // number of the opposite direction: of the messages that arrive over it
};

struct Links {
  std::vector<Link> present;  // no link leads beyond an open boundary
  int directions = 0;         // numbers in use: those that cross ranks somewhere in the grid
};

// Returns the links that lead to those neighbours, under the same numbers.
template <class Leads>
Links links_that(const Links& links, Leads&& leads) {
  Links out{{}, links.directions};
  for (const Link& link : links.present) {
    if (leads(link)) out.present.push_back(link);
  }
  return out;
}

// Directions in the order of the public interface (towards + and - of dimension 0, then of 1, ...),
// then, for Corners::yes, edges and corners. `wide[d]` says whether dimension d exchanges at all.
Links links(const CartesianGrid&, Corners, const std::vector<bool>& wide);

std::vector<int> opposite(std::vector<int> offset);
// Returns the index of a face offset in the public arrays: 2d towards +, 2d+1 towards -.
std::size_t face_index(const std::vector<int>& offset);
// Returns the rank behind the face of that index, or a negative number beyond an open boundary.
int face_neighbour(const CartesianGrid&, std::size_t index);

// The text is like "towards + of dimension 2", or "towards offset (1,-1,0)".
std::string describe(const std::vector<int>& offset);

}  // namespace ropewalk::halo
