// The blocks that one rank sends or receives in a collective: where they lie, how MPI is told, and
// what must stand in them.
#pragma once

#include <memory>

#include "actions.hpp"

namespace mixed {

class Pieces {
 public:
  // Adds a block. A block of a neighbour that does not exist is not `live`: MPI leaves it alone.
  void add(const Layout&, std::size_t bytes, std::uint64_t key, bool live = true);
  // Places them one behind the other, or in the opposite order with gaps.
  void lay_out(bool mapped, bool tight);

  // Every round has bytes of its own.
  void fill(std::size_t round);
  void fill_one(std::size_t index, std::uint64_t key, std::size_t round);
  void check(std::size_t round, const char* what);

  void* data() { return buffer_->data(); }
  void* first() { return counts.empty() ? data() : at(0); }
  // Of all blocks, where they are of one layout; given by each_is(), where there may be no block.
  MPI_Datatype type() const { return pieces_.empty() ? each_type_ : pieces_[0].layout->type; }
  int count() const { return pieces_.empty() ? each_count_ : counts[0]; }
  void each_is(const Layout& layout, std::size_t bytes) {
    each_type_ = layout.type;
    each_count_ = static_cast<int>(bytes / layout.size);
  }
  bool untouched() const { return buffer_->untouched(); }
  std::size_t size() const { return pieces_.size(); }

  // How MPI is told. `places` are in extents, where all blocks are of one layout.
  std::vector<int> counts, places, byte_places;
  std::vector<MPI_Aint> far_places;
  std::vector<MPI_Datatype> types;

 private:
  struct Piece {
    const Layout* layout;
    std::size_t count;
    std::uint64_t key;
    bool live;
  };
  char* at(std::size_t index) { return buffer_->element(0) + far_places[index]; }

  std::vector<Piece> pieces_;
  MPI_Datatype each_type_ = MPI_BYTE;
  int each_count_ = 0;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace mixed
