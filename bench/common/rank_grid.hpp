// Grids of ranks: the one that the user gives, or one that is as even as the ranks allow.
#pragma once

#include <vector>

namespace ropewalk::bench {

// The product is `ranks`; no extent is larger than it must be, and the first ones are the largest.
std::vector<int> even_grid(int ranks, int dimensions);
// Returns `wanted`, which is --mpi-grid, or even_grid() where it is empty. Throws Error(argument),
// alike on every rank, where its product is not the number of ranks.
std::vector<int> rank_grid(const std::vector<int>& wanted, int ranks, int dimensions);

}  // namespace ropewalk::bench
