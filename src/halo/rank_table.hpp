// Numbers that ranks tell each other with one collective call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi/mpi.hpp"

namespace ropewalk::halo {

// The table has one row for each rank. A rank fills its own row, number by number, all ranks alike;
// then gather() brings those of the others.
class RankTable {
 public:
  // Returns the column.
  std::size_t append(std::uint64_t value) {
    own_.push_back(value);
    return own_.size() - 1;
  }

  std::size_t columns() const { return own_.size(); }  // so far: the next one to append

  // Gathers the rows. Collective.
  void gather(mpi::Comm comm, int ranks) {
    all_.resize(own_.size() * static_cast<std::size_t>(ranks));
    if (!own_.empty()) {
      mpi::all_gather(own_.data(), all_.data(), own_.size() * sizeof own_[0], comm);
    }
  }

  std::uint64_t at(int rank, std::size_t column) const {
    return all_[static_cast<std::size_t>(rank) * own_.size() + column];
  }

  // Returns the first rank that has `value` in this column, or -1.
  int find(std::size_t column, std::uint64_t value) const {
    for (std::size_t at = column; at < all_.size(); at += own_.size()) {
      if (all_[at] == value) return static_cast<int>(at / own_.size());
    }
    return -1;
  }

 private:
  std::vector<std::uint64_t> own_;
  std::vector<std::uint64_t> all_;
};

}  // namespace ropewalk::halo
