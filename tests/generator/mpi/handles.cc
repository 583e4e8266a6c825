#include "generator/mpi/handles.hpp"

#include <cstddef>

namespace generator {

int wrong_types = 0;

namespace {

const Type* layout = nullptr;
MPI_Datatype layout_type = MPI_DATATYPE_NULL;

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <class Work>
void for_elements(const void* in, void* inout, const int* count, const MPI_Datatype* type,
                  const Work& work) {
  if (*type != layout_type) ++wrong_types;
  for (int i = 0; i < *count; ++i) {
    const std::int64_t at = i * layout->extent;
    work(static_cast<const std::byte*>(in) + at, static_cast<std::byte*>(inout) + at);
  }
}

// Commutative: sums of all ints.
void sum_up(void* in, void* inout, int* count, MPI_Datatype* type) {
  for_elements(in, inout, count, type, [](const std::byte* a, std::byte* b) {
    for (const Scalar& scalar : layout->scalars) {
      store(b + scalar.offset,
            load<std::uint32_t>(a + scalar.offset) + load<std::uint32_t>(b + scalar.offset));
    }
  });
}

// The operation does not commute: it is the product of two matrices of four ints.
void multiply(void* in, void* inout, int* count, MPI_Datatype* type) {
  for_elements(in, inout, count, type, [](const std::byte* a, std::byte* b) {
    std::array<std::uint32_t, 4> x{};
    std::array<std::uint32_t, 4> y{};
    for (std::size_t k = 0; k < 4; ++k) {
      x[k] = load<std::uint32_t>(a + layout->scalars[k].offset);
      y[k] = load<std::uint32_t>(b + layout->scalars[k].offset);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      store(b + layout->scalars[k].offset,
            x[k / 2 * 2] * y[k % 2] + x[k / 2 * 2 + 1] * y[k % 2 + 2]);
    }
  });
}

// Not commutative, on 64 bits: the halves are a and b of x -> a x + b.
void compose(void* in, void* inout, int* count, MPI_Datatype* type) {
  for_elements(in, inout, count, type, [](const std::byte* a, std::byte* b) {
    const auto x = load<std::uint64_t>(a);
    const auto y = load<std::uint64_t>(b);
    const auto x_a = static_cast<std::uint32_t>(x >> 32);
    const std::uint32_t product = x_a * static_cast<std::uint32_t>(y >> 32);
    const std::uint32_t sum = x_a * static_cast<std::uint32_t>(y) + static_cast<std::uint32_t>(x);
    store(b, std::uint64_t{product} << 32 | sum);
  });
}

MPI_Datatype element(char code) {
  switch (code) {
    case 'd':
      return MPI_DOUBLE;
    case 'c':
      return MPI_CHAR;
    case 's':
      return MPI_SHORT;
    default:
      return MPI_INT;
  }
}

MPI_Datatype make_structure(const Recipe& recipe) {
  const std::vector<int> ones(recipe.places.size(), 1);
  const std::vector<MPI_Aint> places(recipe.places.begin(), recipe.places.end());
  std::vector<MPI_Datatype> types;
  for (const char code : recipe.elements) types.push_back(element(code));
  MPI_Datatype made;
  PMPI_Type_create_struct(static_cast<int>(places.size()), ones.data(), places.data(), types.data(),
                          &made);
  return made;
}

MPI_Datatype make(const Recipe& recipe) {
  const MPI_Datatype of = element(recipe.elements[0]);
  const std::vector<int>& lengths = recipe.lengths;
  MPI_Datatype made;
  switch (recipe.maker) {
    case Recipe::Maker::contiguous:
      PMPI_Type_contiguous(lengths[0], of, &made);
      break;
    case Recipe::Maker::vector:
      PMPI_Type_vector(lengths[0], lengths[1], lengths[2], of, &made);
      break;
    case Recipe::Maker::indexed:
      PMPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), recipe.places.data(), of,
                        &made);
      break;
    default:
      made = make_structure(recipe);
  }
  if (recipe.resized) {
    MPI_Datatype plain = made;
    PMPI_Type_create_resized(plain, recipe.lower, recipe.extent, &made);
    PMPI_Type_free(&plain);
  }
  PMPI_Type_commit(&made);
  return made;
}

template <class First>
struct Pair {
  First value;
  int index;
};
template <class First>
constexpr std::int64_t second() {
  return static_cast<std::int64_t>(offsetof(Pair<First>, index));
}

std::int64_t extent_of(MPI_Datatype handle) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(handle, &lower, &extent);
  return extent;
}

}  // namespace

Handles::Handles() {
  add_integers();
  add_others();
  add_pairs();
  make_derived();
  make_operations();
}

Handles::~Handles() {
  for (std::size_t i = 0; i < types_.size(); ++i) {
    if (catalogue.types[i].of == Class::derived) PMPI_Type_free(&types_[i]);
  }
  for (int i = 0; i < operations; ++i) {
    const bool of_user = static_cast<Operation>(i) >= Operation::user_sum;
    if (of_user) PMPI_Op_free(&ops_[static_cast<std::size_t>(i)]);
  }
}

MPI_Datatype Handles::type(const Type& of) const {
  return types_[static_cast<std::size_t>(&of - catalogue.types.data())];
}

void Handles::use_layout(const Type& of) const {
  layout = &of;
  layout_type = type(of);
}

void Handles::add(const char* name, MPI_Datatype handle, Class of, char kind) {
  int bytes = 0;
  if (handle == MPI_DATATYPE_NULL || PMPI_Type_size(handle, &bytes) != MPI_SUCCESS) return;
  if (bytes <= 0 || bytes == MPI_UNDEFINED) return;  // Fortran's, in an MPI without Fortran
  if (kind == 'f' && (bytes < 4 || (bytes == 16 && of == Class::other))) return;
  catalogue.add(name, of, kind, bytes);
  types_.push_back(handle);
}

void Handles::add_pair(const char* name, MPI_Datatype handle, Scalar first, Scalar second) {
  int bytes = 0;
  if (handle == MPI_DATATYPE_NULL || PMPI_Type_size(handle, &bytes) != MPI_SUCCESS) return;
  if (bytes != first.bytes + second.bytes) return;
  catalogue.add_pair(name, first, second, extent_of(handle));
  types_.push_back(handle);
}

#define TYPE(name, of, kind) add(#name, name, Class::of, kind)

void Handles::add_integers() {
  TYPE(MPI_INT, integer, 'i');
  TYPE(MPI_SIGNED_CHAR, integer, 'i');
  TYPE(MPI_UNSIGNED_CHAR, integer, 'u');
  TYPE(MPI_SHORT, integer, 'i');
  TYPE(MPI_UNSIGNED_SHORT, integer, 'u');
  TYPE(MPI_UNSIGNED, integer, 'u');
  TYPE(MPI_LONG, integer, 'i');
  TYPE(MPI_UNSIGNED_LONG, integer, 'u');
  TYPE(MPI_LONG_LONG, integer, 'i');
  TYPE(MPI_UNSIGNED_LONG_LONG, integer, 'u');
  TYPE(MPI_INT8_T, integer, 'i');
  TYPE(MPI_UINT8_T, integer, 'u');
  TYPE(MPI_INT16_T, integer, 'i');
  TYPE(MPI_UINT16_T, integer, 'u');
  TYPE(MPI_INT32_T, integer, 'i');
  TYPE(MPI_UINT32_T, integer, 'u');
  TYPE(MPI_INT64_T, integer, 'i');
  TYPE(MPI_UINT64_T, integer, 'u');
  TYPE(MPI_INTEGER, fortran_integer, 'i');
  TYPE(MPI_INTEGER1, fortran_integer, 'i');
  TYPE(MPI_INTEGER2, fortran_integer, 'i');
  TYPE(MPI_INTEGER4, fortran_integer, 'i');
  TYPE(MPI_INTEGER8, fortran_integer, 'i');
  TYPE(MPI_AINT, shared_integer, 'i');
  TYPE(MPI_OFFSET, shared_integer, 'i');
  TYPE(MPI_COUNT, shared_integer, 'i');
}

void Handles::add_others() {
  TYPE(MPI_FLOAT, real, 'f');
  TYPE(MPI_DOUBLE, real, 'f');
  TYPE(MPI_LONG_DOUBLE, real, 'f');
  TYPE(MPI_REAL, real, 'f');
  TYPE(MPI_DOUBLE_PRECISION, real, 'f');
  TYPE(MPI_REAL4, real, 'f');
  TYPE(MPI_REAL8, real, 'f');
  TYPE(MPI_C_FLOAT_COMPLEX, complex, 'f');
  TYPE(MPI_C_DOUBLE_COMPLEX, complex, 'f');
  TYPE(MPI_C_LONG_DOUBLE_COMPLEX, complex, 'f');
  TYPE(MPI_CXX_FLOAT_COMPLEX, complex, 'f');
  TYPE(MPI_CXX_DOUBLE_COMPLEX, complex, 'f');
  TYPE(MPI_CXX_LONG_DOUBLE_COMPLEX, complex, 'f');
  TYPE(MPI_COMPLEX, complex, 'f');
  TYPE(MPI_DOUBLE_COMPLEX, complex, 'f');
  TYPE(MPI_COMPLEX8, complex, 'f');
  TYPE(MPI_COMPLEX16, complex, 'f');
  TYPE(MPI_C_BOOL, logical, 'b');
  TYPE(MPI_CXX_BOOL, logical, 'b');
  TYPE(MPI_LOGICAL, logical, 'b');
  TYPE(MPI_BYTE, byte, 'u');
  TYPE(MPI_CHAR, other, 'i');
  TYPE(MPI_WCHAR, other, 'i');
  TYPE(MPI_CHARACTER, other, 'i');
}
#undef TYPE

void Handles::add_pairs() {
  add_pair("MPI_2INT", MPI_2INT, {0, 'i', 4}, {4, 'i', 4});
  add_pair("MPI_FLOAT_INT", MPI_FLOAT_INT, {0, 'f', 4}, {second<float>(), 'i', 4});
  add_pair("MPI_DOUBLE_INT", MPI_DOUBLE_INT, {0, 'f', 8}, {second<double>(), 'i', 4});
  add_pair("MPI_LONG_INT", MPI_LONG_INT, {0, 'i', 8}, {second<long>(), 'i', 4});
  add_pair("MPI_SHORT_INT", MPI_SHORT_INT, {0, 'i', 2}, {second<short>(), 'i', 4});
  add_pair("MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT, {0, 'f', 16},
           {second<long double>(), 'i', 4});
  add_pair("MPI_2REAL", MPI_2REAL, {0, 'f', 4}, {4, 'f', 4});
  add_pair("MPI_2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION, {0, 'f', 8}, {8, 'f', 8});
  add_pair("MPI_2INTEGER", MPI_2INTEGER, {0, 'i', 4}, {4, 'i', 4});
}

void Handles::make_derived() {
  catalogue.add_derived();
  for (std::size_t i = types_.size(); i < catalogue.types.size(); ++i) {
    types_.push_back(make(catalogue.types[i].recipe));
    catalogue.types[i].extent = extent_of(types_[i]);
  }
}

void Handles::make_operations() {
  ops_ = {MPI_MAX, MPI_MIN, MPI_SUM,  MPI_PROD, MPI_LAND,   MPI_BAND,
          MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
  const auto of_user = [this](MPI_User_function* function, int commutes) {
    MPI_Op handle;
    PMPI_Op_create(function, commutes, &handle);
    ops_.push_back(handle);
  };
  of_user(&sum_up, 1);
  of_user(&multiply, 0);
  of_user(&compose, 0);
}

}  // namespace generator
