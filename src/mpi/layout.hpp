// What a datatype is made of, as MPI_Type_get_envelope and MPI_Type_get_contents tell it. Private
// to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "mpi/abi.hpp"
#include "mpi/datatypes.hpp"
#include "mpi/element_list.hpp"
#include "mpi/functions.hpp"

namespace ropewalk::mpi {

// The name of a predefined datatype, and, of one by MPI_Type_create_f90_*, that of its kind:
// INTEGER, REAL or COMPLEX of whatever size.
std::optional<DatatypeName> name_of(Datatype);

class TypeLayout {
 public:
  explicit TypeLayout(Datatype);

  Order order() const noexcept { return order_; }

  // See consists_of() of a datatype.
  friend bool consists_of(const TypeLayout&, const std::function<bool(Datatype)>& accepts);

  // Copies one element at `data` to or from its bytes without gaps, without MPI's help. Throws
  // Error(unsupported) where the order is unknown.
  void pack(const void* data, void* packed) const;
  void unpack(const void* packed, void* data) const;

  // See strided_blocks().
  using Blocks = std::vector<StridedBlock>;
  std::optional<Blocks> blocks(std::size_t most) const;

  // Adds the elements of one at `first`, see element_list(); false where there is no such list.
  bool add_elements(Count first, ElementList& list, std::size_t most) const;

 private:
  // How much may still be read: a description may be of any length.
  struct Budget {
    std::size_t parts = std::size_t{1} << 12;
    std::size_t numbers = std::size_t{1} << 20;
  };
  // A row has elements one after the other.
  struct Row {
    std::size_t part;  // whose elements they are
    Count first;       // bytes from the beginning of this type to the first of them
    Count count;
  };

  TypeLayout(Datatype, Budget&);
  void read(Datatype, Budget&);
  void add_parts(const std::vector<Word>& types, Budget&);
  Order judge() const;
  bool ascends(const Row&, Count& end) const;
  bool is_gapless() const noexcept;
  // Calls visit(Row) in the order of the type map until it returns false.
  template <class Visit>
  bool for_each_row(const Visit& visit) const;
  // The same for callers in another file.
  bool visit_rows(const std::function<bool(const Row&)>& visit) const;
  template <class Visit>
  bool for_each_listed(const Visit& visit) const;
  template <class Visit>
  bool for_each_of_subarray(const Visit& visit) const;
  // See layout_distributed.cc.
  struct Dimension;
  std::vector<Dimension> dimensions_of_distributed() const;
  bool is_too_long() const;
  bool for_each_of_distributed(const std::function<bool(const Row&)>& visit) const;
  // Nobody tells what is in it, or it has too many rows.
  bool is_opaque() const { return !combiner_ || (combiner_ == Combiner::darray && is_too_long()); }
  // An array of a subarray's description: 0 the sizes, 1 the extents, 2 the places. Dimensions are
  // counted as in C: the last is the one whose elements lie side by side.
  Count of_subarray(std::size_t array, std::size_t dimension) const;
  std::optional<Blocks> blocks_of_vector(std::size_t most) const;
  std::optional<Blocks> blocks_of_subarray(std::size_t most) const;
  std::optional<Blocks> listed_blocks(std::size_t most) const;
  template <class Move>
  void walk(std::uintptr_t data, std::byte*& packed, const Move& move) const;

  Datatype named_;                    // a predefined type itself
  std::optional<Combiner> combiner_;  // none: MPI does not tell, or too much
  std::vector<Count> numbers_;        // integers, then addresses, then large counts
  bool large_ = false;                // made with large counts
  std::vector<TypeLayout> parts_;
  TypeExtent extent_;
  Count size_ = 0;
  Order order_ = Order::unknown;
};

}  // namespace ropewalk::mpi
