// What reductions combine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "the_mpi.hpp"

namespace mixed {

// What is reduced: elements of a type by an operation.
struct Kind {
  const char* name;
  MPI_Datatype type;
  MPI_Op op;
  std::size_t bytes;
  void (*fill)(void* at, std::size_t elements, std::uint64_t key, int rank);
  // Combines element i of ranks `first` to `last`.
  void (*combined)(void* at, std::size_t i, std::uint64_t key, int first, int last);
};

Kind kind_of(std::size_t which);  // any number chooses

}  // namespace mixed
