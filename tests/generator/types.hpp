// The types and operations that random collectives draw from, each type with its type map. Knows
// neither an MPI nor ropewalk: who runs the collectives adds the predefined types that there are,
// and makes a handle of each derived one by its recipe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace generator {

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
  char kind;  // i integer, u unsigned, f floating, b truth value
  int bytes;
};

// How a derived type is made: by which constructor, of which elements.
struct Recipe {
  enum class Maker { contiguous, vector, indexed, structure };
  Maker maker = Maker::contiguous;
  std::vector<int> lengths;  // contiguous: the count; vector: count, length and stride
  std::vector<int> places;   // indexed: in elements; structure: in bytes, one element each
  std::string elements;      // i int, d double, c char, s short
  bool resized = false;
  int lower = 0;  // bytes, if resized; the extent as well
  int extent = 0;
};

struct Type {
  std::string name;
  Class of;
  std::vector<Scalar> scalars;  // in the order of the type map
  std::int64_t extent;
  std::int64_t low, high;  // data lies in [low, high)
  int family = -1;         // types of one family have one signature
  int repeat = 1;          // of so many elements of this one
  Recipe recipe = {};

  std::size_t data_bytes() const;
  std::size_t largest_scalar() const;  // bytes; 1 where there is none
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
  user_sum,     // commutative
  user_matrix,  // not commutative, of four ints
  user_affine   // not commutative, of 64 bits
};
inline constexpr int operations = 15;
inline constexpr std::array<const char*, operations> operation_names = {
    "max",  "min",  "sum",    "prod",   "land",     "band",           "lor",        "bor",
    "lxor", "bxor", "maxloc", "minloc", "user sum", "matrix product", "composition"};

// What is under test.
enum class Interface {
  cpp,  // Collectives: elements of a type of ropewalk, compared with loops
  c,    // rw_allreduce and the others, compared with the MPI underneath
  mpi   // MPI_Allreduce and the others under the drop-in, compared with PMPI_Allreduce
};

class Catalogue {
 public:
  Catalogue() : families(2) {}
  void add(const std::string& name, Class, char kind, int bytes);  // complex: kind f
  void add_pair(const std::string& name, Scalar first, Scalar second, std::int64_t extent);
  // Every constructor. Their extents are the MPI's to say.
  void add_derived();

  std::vector<Type> types;
  std::vector<std::vector<std::size_t>> families;  // indices of types

  // Operations that MPI allows for a type, and that MPIs do right.
  static std::vector<Operation> legal(const Type&, Interface);

 private:
  void derive(const std::string& name, int family, Recipe);
  void add_random_derived();
};

// Returns the bytes of a scalar that hold data; the rest of a long double is nobody's, and not
// always moved.
int significant(const Scalar&);

}  // namespace generator
