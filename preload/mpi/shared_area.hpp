// This file has the memory by which ranks of one node run a persistent collective: an area of each
// rank, in its arena, which stays until all ranks have left it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "node/peers.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::preload {

class SharedArea {
 public:
  // Takes so much memory for this rank of the team. Throws where there is none.
  SharedArea(Collectives& team, std::size_t bytes);
  ~SharedArea();
  SharedArea(const SharedArea&) = delete;
  SharedArea& operator=(const SharedArea&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(areas_.size()); }
  // Where the area lies in this rank's arena, as the others must be told.
  std::uint64_t offset() const noexcept;
  // Finds the areas of the others, from the offset() of each rank.
  void connect(std::span<const std::uint64_t> offsets) noexcept;
  // All ranks have connected and go on to use the areas: they stay until all ranks have left.
  void share() noexcept { shared_ = true; }
  // A block of this rank's arena is given back with the area, to which the others look as well.
  void keep(void* block) noexcept;

  std::byte* of(int rank) const noexcept { return areas_[static_cast<std::size_t>(rank)]; }
  std::byte* own() const noexcept { return of(rank_); }
  // Where the arena of a rank begins, as this process maps it.
  std::byte* arena(int rank) const noexcept;
  node::Peer& process(int rank) const noexcept { return *peers_[static_cast<std::size_t>(rank)]; }

 private:
  static void give_back_what_all_have_left() noexcept;

  int rank_;
  bool shared_ = false;
  std::vector<std::byte*> areas_;  // by rank, as this process maps them
  std::vector<void*> kept_;
  std::vector<std::shared_ptr<node::Peer>> peers_;
};

}  // namespace ropewalk::preload
