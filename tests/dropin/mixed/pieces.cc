#include "pieces.hpp"

namespace mixed {

void Pieces::add(const Layout& layout, std::size_t bytes, std::uint64_t key, bool live) {
  pieces_.push_back({&layout, bytes / layout.size, key, live});
}

void Pieces::lay_out(bool mapped, bool tight) {
  const std::size_t number = pieces_.size();
  std::size_t end = 0;
  far_places.resize(number);
  for (std::size_t i = 0; i < number; ++i) {
    const std::size_t index = tight ? i : number - 1 - i;
    const Piece& piece = pieces_[index];
    if (!tight) end += piece.layout->extent;
    far_places[index] = static_cast<MPI_Aint>(end);
    end += piece.count * piece.layout->extent;
  }
  // MPI may refuse null arrays, even of nothing.
  counts.reserve(number + 1);
  places.reserve(number + 1);
  byte_places.reserve(number + 1);
  far_places.reserve(number + 1);
  types.reserve(number + 1);
  for (std::size_t i = 0; i < number; ++i) {
    const auto extent = static_cast<MPI_Aint>(pieces_[i].layout->extent);
    counts.push_back(static_cast<int>(pieces_[i].count));
    places.push_back(static_cast<int>(far_places[i] / extent));
    byte_places.push_back(static_cast<int>(far_places[i]));
    types.push_back(pieces_[i].layout->type);
  }
  buffer_ = std::make_unique<Buffer>(bytes_layout(), end, mapped);
}

void Pieces::fill_one(std::size_t index, std::uint64_t key, std::size_t round) {
  const Piece& piece = pieces_[index];
  fill_elements(at(index), *piece.layout, piece.count, mix(key + round));
}

void Pieces::fill(std::size_t round) {
  for (std::size_t i = 0; i < size(); ++i) {
    if (pieces_[i].live) fill_one(i, pieces_[i].key, round);
  }
}

void Pieces::check(std::size_t round, const char* what) {
  for (std::size_t i = 0; i < size(); ++i) {
    const Piece& piece = pieces_[i];
    if (!piece.live) continue;
    expect(take_elements(at(i), *piece.layout, piece.count, mix(piece.key + round)), what);
  }
}

}  // namespace mixed
