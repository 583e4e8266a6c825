// Types and operations as the C interface names them: ropewalk's numbers or MPI's handles.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/engine.hpp"
#include "ropewalk/ropewalk.h"

namespace ropewalk::collectives {

// The elements of a call, as bytes to move. Gaps of derived types are packed away.
struct Elements {
  std::size_t bytes = 1;  // of data in one element
  bool packed = false;    // not contiguous: MPI packs and unpacks
  mpi::Datatype type{};
};
Elements elements(rw_type type);  // Error(argument) for an own number that is no type

// Error(argument) for numbers that are no type or operation, and for pairs MPI does not allow;
// Error(unsupported) for user operations on types with gaps.
Operation operation(rw_type type, rw_op op);

// A buffer of elements seen as contiguous bytes: itself, or a packed copy. For what is received the
// copy is unpacked by finish().
class Contiguous {
 public:
  Contiguous(const Elements&, const void* data, std::size_t count, mpi::Comm comm);
  void fill();    // packs, for what is sent
  void finish();  // unpacks, for what was received
  void* data() const noexcept { return data_; }

 private:
  const Elements& elements_;
  void* original_;
  std::size_t count_;
  mpi::Comm comm_;
  std::vector<std::byte> copy_;
  void* data_;
};

}  // namespace ropewalk::collectives
