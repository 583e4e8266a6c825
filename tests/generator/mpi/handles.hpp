// The types and operations of the generator as handles of the MPI that the program is compiled
// against: all that it predefines, and what is made by the recipes.
#pragma once

#include <vector>

#include "generator/types.hpp"
#include "preload/mpi/the_mpi.hpp"

namespace generator {

class Handles {
 public:
  Handles();
  ~Handles();
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  Catalogue catalogue;
  MPI_Datatype type(const Type& of) const;  // one of the catalogue
  MPI_Op op(Operation of) const { return ops_[static_cast<std::size_t>(of)]; }

  // The operations of the user find the places of their operands here: set before a call, and left
  // alone until it is complete.
  void use_layout(const Type&) const;

 private:
  void add(const char* name, MPI_Datatype, Class, char kind);
  void add_pair(const char* name, MPI_Datatype, Scalar first, Scalar second);
  void add_integers();
  void add_others();
  void add_pairs();
  void make_derived();
  void make_operations();
  std::vector<MPI_Datatype> types_;  // by the index of the catalogue
  std::vector<MPI_Op> ops_;
};

// Calls of operations of the user that came with another type than the one set.
extern int wrong_types;

}  // namespace generator
