// The predefined elements that a datatype is made of, for operations that work element by element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "mpi/mpi.hpp"

namespace ropewalk::mpi {

// The elements of one predefined datatype that one element of a derived one consists of, in the
// order of the type map.
struct ElementList {
  // Elements one behind the other, each at the extent of the predefined type from the last.
  struct Run {
    std::int64_t offset;  // bytes from the address of the derived element
    std::int64_t count;
  };
  Datatype type{};
  std::int64_t extent = 0;  // bytes from one element of a run to the next
  std::vector<Run> runs;
};

// The result is none for a type made of several predefined ones, for more than `most` runs, and
// where order_of() is unknown. A predefined type is a list of one. Local.
std::optional<ElementList> element_list(Datatype, std::size_t most);

}  // namespace ropewalk::mpi
