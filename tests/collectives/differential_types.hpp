// The types and operations that the differential test draws from: predefined ones, and derived ones
// of every constructor, each with its type map, so that values can be put where they belong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/ropewalk.h"
#include "ropewalk/types.hpp"

namespace ropewalk::test {

struct Scalar {
  std::int64_t offset;
  ElementType type;
};

struct TypeEntry {
  std::string name;
  mpi::Datatype handle;
  rw_type number;               // what the C interface is called with
  std::vector<Scalar> scalars;  // in the order of the type map
  std::int64_t extent;
  std::int64_t low, high;  // data lies in [low, high)
  bool predefined;
  bool logical_too;  // MPI defines its logical operations for it
  bool matrix;       // four int32 in a derived type, whatever their places: one signature

  std::size_t data_bytes() const;
};

struct OpEntry {
  std::string name;
  mpi::Op handle;
  rw_op number;
  ReductionOp op;  // for values that suit it
  enum class Kind { predefined, sum, matrix, affine } kind;
};

class Catalogue {
 public:
  Catalogue();
  ~Catalogue();
  Catalogue(const Catalogue&) = delete;
  Catalogue& operator=(const Catalogue&) = delete;

  std::vector<TypeEntry> types;
  std::vector<std::size_t> matrices;  // indices of types
  std::vector<OpEntry> ops;

  // Operations that MPI allows for a type, as indices of ops.
  std::vector<std::size_t> legal(const TypeEntry&) const;

 private:
  void add_predefined();
  void add_derived();
  void add_ops();
  void add(const std::string& name, std::uintptr_t handle, std::vector<Scalar> scalars);
  std::vector<std::uintptr_t> made_;
  std::vector<std::uintptr_t> made_ops_;
};

// The operations of the user find the places of their operands here: set before a call, and left
// alone until it is complete. A callback cannot ask more of MPI than its type's handle.
void use_layout(const TypeEntry&);

}  // namespace ropewalk::test
