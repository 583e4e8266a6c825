// The types and operations that the differential test draws from: all that MPI predefines, and
// derived ones of every constructor, each with its type map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "the_mpi.hpp"

namespace test {

// MPI's classes of types, as operations are defined for them.
enum class Class {
  integer,
  fortran_integer,
  shared_integer,
  real,
  complex,
  logical,
  byte,
  pair,
  other,
  derived
};

struct Scalar {
  std::int64_t offset;
  char kind;  // i integer, u unsigned, f floating, c complex, b truth value
  int bytes;
};

struct Type {
  std::string name;
  MPI_Datatype handle;
  Class of;
  std::vector<Scalar> scalars;  // in the order of the type map
  std::int64_t extent;
  std::int64_t low, high;  // data lies in [low, high)
  int family = -1;         // types of one family have one signature
  int repeat = 1;          // of so many elements of this one
};

enum class Operation {
  max,
  min,
  sum,
  prod,
  land,
  band,
  lor,
  bor,
  lxor,
  bxor,
  maxloc,
  minloc,
  user_sum,
  user_matrix,
  user_affine
};

struct Op {
  std::string name;
  MPI_Op handle;
  Operation operation;
};

class Catalogue {
 public:
  Catalogue();
  ~Catalogue();
  Catalogue(const Catalogue&) = delete;
  Catalogue& operator=(const Catalogue&) = delete;

  std::vector<Type> types;
  std::vector<Op> ops;
  std::vector<std::vector<std::size_t>> families;  // indices of types

  // Operations that MPI allows for a type, as indices of ops.
  std::vector<std::size_t> legal(const Type&) const;

 private:
  void add_integers();
  void add_others();
  void add_pairs();
  void add_derived();
  void add_random_derived();
  void add_ops();
  void add(const char* name, MPI_Datatype, Class, char kind);
  void add_pair(const char* name, MPI_Datatype, Scalar first, Scalar second);
  void derive(const std::string& name, MPI_Datatype, int family, std::vector<Scalar>);
  void make(const char* name, MPI_User_function*, int commutes, Operation);
};

// Bytes of a scalar that hold data; the rest of a long double is nobody's, and not always moved.
int significant(const Scalar&);

// The operations of the user find the places of their operands here: set before a call.
void use_layout(const Type&);
// Calls of them that came with another type than the one set.
extern int wrong_types;

}  // namespace test
