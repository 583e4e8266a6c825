#include "types.hpp"

#include <algorithm>
#include <random>

namespace test {

int wrong_types = 0;

namespace {

const Type* layout = nullptr;

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
  if (*type != layout->handle) ++wrong_types;
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

// Not commutative: the product of two matrices of four ints.
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

MPI_Datatype resized(MPI_Datatype type, MPI_Aint lower, MPI_Aint extent) {
  MPI_Datatype made;
  PMPI_Type_create_resized(type, lower, extent, &made);
  PMPI_Type_free(&type);
  return made;
}

MPI_Datatype contiguous(int count, MPI_Datatype of) {
  MPI_Datatype made;
  PMPI_Type_contiguous(count, of, &made);
  return made;
}

MPI_Datatype vector(int count, int length, int stride, MPI_Datatype of) {
  MPI_Datatype made;
  PMPI_Type_vector(count, length, stride, of, &made);
  return made;
}

MPI_Datatype indexed(const std::vector<int>& lengths, const std::vector<int>& places,
                     MPI_Datatype of) {
  MPI_Datatype made;
  PMPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), of, &made);
  return made;
}

MPI_Datatype structure(const std::vector<MPI_Aint>& places,
                       const std::vector<MPI_Datatype>& types) {
  const std::vector<int> ones(places.size(), 1);
  MPI_Datatype made;
  PMPI_Type_create_struct(static_cast<int>(places.size()), ones.data(), places.data(), types.data(),
                          &made);
  return made;
}

std::vector<Scalar> ints(const std::vector<std::int64_t>& offsets) {
  std::vector<Scalar> scalars;
  for (const std::int64_t offset : offsets) scalars.push_back({offset, 'i', 4});
  return scalars;
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

bool is_any(Class of, std::initializer_list<Class> classes) {
  return std::find(classes.begin(), classes.end(), of) != classes.end();
}

// MPICH 5.0.2 and Open MPI 5.0 write beyond their memory in reductions of derived types of which
// data lies before the buffer, or not where the extent begins.
bool is_reducible(const Type& type) {
  return type.of == Class::derived && type.family == 0 && type.low >= 0 &&
         type.name.rfind("random", 0) != 0;
}

bool allowed(Operation operation, const Type& type) {
  const bool number =
      is_any(type.of, {Class::integer, Class::fortran_integer, Class::shared_integer, Class::real});
  switch (operation) {
    case Operation::max:
    case Operation::min:
      return number;
    case Operation::sum:
    case Operation::prod:
      return number || type.of == Class::complex;
    case Operation::land:
    case Operation::lor:
    case Operation::lxor:
      return is_any(type.of, {Class::integer, Class::logical});
    case Operation::band:
    case Operation::bor:
    case Operation::bxor:
      return is_any(type.of,
                    {Class::integer, Class::fortran_integer, Class::shared_integer, Class::byte});
    case Operation::maxloc:
    case Operation::minloc:
      return type.of == Class::pair;
    case Operation::user_sum:
      return type.name == "MPI_INT" || type.name == "MPI_UINT32_T" || is_reducible(type);
    case Operation::user_matrix:
      return is_reducible(type) && type.repeat == 1;
    case Operation::user_affine:
      return type.name == "MPI_UINT64_T";
  }
  return false;
}

}  // namespace

int significant(const Scalar& scalar) {
  return scalar.kind == 'f' && scalar.bytes == 16 ? 10 : scalar.bytes;
}

void use_layout(const Type& type) { layout = &type; }

Catalogue::Catalogue() {
  families.resize(2);
  add_integers();
  add_others();
  add_pairs();
  add_derived();
  add_random_derived();
  add_ops();
}

Catalogue::~Catalogue() {
  for (Type& type : types) {
    if (type.of == Class::derived) PMPI_Type_free(&type.handle);
  }
  for (Op& op : ops) {
    if (op.operation >= Operation::user_sum) PMPI_Op_free(&op.handle);
  }
}

void Catalogue::add(const char* name, MPI_Datatype handle, Class of, char kind) {
  int bytes = 0;
  if (handle == MPI_DATATYPE_NULL || PMPI_Type_size(handle, &bytes) != MPI_SUCCESS) return;
  if (bytes <= 0 || bytes == MPI_UNDEFINED) return;  // Fortran's, in an MPI without Fortran
  if (kind == 'f' && (bytes < 4 || (bytes == 16 && of != Class::real))) return;
  std::vector<Scalar> scalars{{0, kind, bytes}};
  if (kind == 'c') scalars = {{0, 'f', bytes / 2}, {bytes / 2, 'f', bytes / 2}};
  types.push_back({name, handle, of, scalars, bytes, 0, bytes});
  if (handle == MPI_INT) {
    types.back().family = 0;
    types.back().repeat = 4;
    families[0].push_back(types.size() - 1);
  }
}

#define TYPE(name, of, kind) add(#name, name, Class::of, kind)

void Catalogue::add_integers() {
  TYPE(MPI_SIGNED_CHAR, integer, 'i');
  TYPE(MPI_UNSIGNED_CHAR, integer, 'u');
  TYPE(MPI_SHORT, integer, 'i');
  TYPE(MPI_UNSIGNED_SHORT, integer, 'u');
  TYPE(MPI_INT, integer, 'i');
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

void Catalogue::add_others() {
  TYPE(MPI_FLOAT, real, 'f');
  TYPE(MPI_DOUBLE, real, 'f');
  TYPE(MPI_LONG_DOUBLE, real, 'f');
  TYPE(MPI_REAL, real, 'f');
  TYPE(MPI_DOUBLE_PRECISION, real, 'f');
  TYPE(MPI_REAL4, real, 'f');
  TYPE(MPI_REAL8, real, 'f');
  TYPE(MPI_C_FLOAT_COMPLEX, complex, 'c');
  TYPE(MPI_C_DOUBLE_COMPLEX, complex, 'c');
  TYPE(MPI_C_LONG_DOUBLE_COMPLEX, complex, 'c');
  TYPE(MPI_CXX_FLOAT_COMPLEX, complex, 'c');
  TYPE(MPI_CXX_DOUBLE_COMPLEX, complex, 'c');
  TYPE(MPI_CXX_LONG_DOUBLE_COMPLEX, complex, 'c');
  TYPE(MPI_COMPLEX, complex, 'c');
  TYPE(MPI_DOUBLE_COMPLEX, complex, 'c');
  TYPE(MPI_COMPLEX8, complex, 'c');
  TYPE(MPI_COMPLEX16, complex, 'c');
  TYPE(MPI_C_BOOL, logical, 'b');
  TYPE(MPI_CXX_BOOL, logical, 'b');
  TYPE(MPI_LOGICAL, logical, 'b');
  TYPE(MPI_BYTE, byte, 'u');
  TYPE(MPI_CHAR, other, 'i');
  TYPE(MPI_WCHAR, other, 'i');
  TYPE(MPI_CHARACTER, other, 'i');
}
#undef TYPE

void Catalogue::add_pair(const char* name, MPI_Datatype handle, Scalar first, Scalar second) {
  int bytes = 0;
  if (handle == MPI_DATATYPE_NULL || PMPI_Type_size(handle, &bytes) != MPI_SUCCESS) return;
  if (bytes != first.bytes + second.bytes) return;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(handle, &lower, &extent);
  types.push_back({name, handle, Class::pair, {first, second}, extent, 0, extent});
}

void Catalogue::add_pairs() {
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

void Catalogue::derive(const std::string& name, MPI_Datatype handle, int family,
                       std::vector<Scalar> scalars) {
  PMPI_Type_commit(&handle);
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(handle, &lower, &extent);
  Type type{name, handle, Class::derived, std::move(scalars), extent, 0, 0, family};
  if (!type.scalars.empty()) {
    type.low = INT64_MAX;
    type.high = INT64_MIN;
  }
  for (const Scalar& scalar : type.scalars) {
    type.low = std::min(type.low, scalar.offset);
    type.high = std::max(type.high, scalar.offset + scalar.bytes);
  }
  if (family == 0) type.repeat = 4 / static_cast<int>(type.scalars.size());
  if (family >= 0) families[static_cast<std::size_t>(family)].push_back(types.size());
  types.push_back(std::move(type));
}

void Catalogue::add_derived() {
  derive("contiguous(4 int)", contiguous(4, MPI_INT), 0, ints({0, 4, 8, 12}));
  derive("contiguous(2 int)", contiguous(2, MPI_INT), 0, ints({0, 4}));
  derive("vector(2 x 1 of 2 int)", vector(2, 1, 2, MPI_INT), 0, ints({0, 8}));
  derive("vector(2 x 2 of 3 int)", vector(2, 2, 3, MPI_INT), 0, ints({0, 4, 12, 16}));
  derive("indexed(2@3 1@0 1@6 int)", indexed({2, 1, 1}, {3, 0, 6}, MPI_INT), 0,
         ints({12, 16, 0, 24}));
  derive("indexed(1@3 2@0 1@2 int), dense", indexed({1, 2, 1}, {3, 0, 2}, MPI_INT), 0,
         ints({12, 0, 4, 8}));
  derive("contiguous(4 int) in [-4, 20)", resized(contiguous(4, MPI_INT), -4, 24), 0,
         ints({0, 4, 8, 12}));
  derive("vector(4 x 1 of -2 int)", vector(4, 1, -2, MPI_INT), 0, ints({0, -8, -16, -24}));
  derive("indexed(2@-3 2@5 int)", indexed({2, 2}, {-3, 5}, MPI_INT), 0, ints({-12, -8, 20, 24}));
  derive("contiguous(0 int)", contiguous(0, MPI_INT), -1, {});
  derive("contiguous(3 double)", contiguous(3, MPI_DOUBLE), -1,
         {{0, 'f', 8}, {8, 'f', 8}, {16, 'f', 8}});
  derive("struct(char@1, double@8, short@16)",
         structure({1, 8, 16}, {MPI_CHAR, MPI_DOUBLE, MPI_SHORT}), -1,
         {{1, 'i', 1}, {8, 'f', 8}, {16, 'i', 2}});
  derive("struct(double, int) in 16", resized(structure({0, 8}, {MPI_DOUBLE, MPI_INT}), 0, 16), 1,
         {{0, 'f', 8}, {8, 'i', 4}});
  derive("struct(double@8, int@0)", structure({8, 0}, {MPI_DOUBLE, MPI_INT}), 1,
         {{8, 'f', 8}, {0, 'i', 4}});
  derive("struct(double@-8, int@0) in [-8, 8)",
         resized(structure({-8, 0}, {MPI_DOUBLE, MPI_INT}), -8, 16), 1,
         {{-8, 'f', 8}, {0, 'i', 4}});
}

// Four ints in any order in sixteen places, of which the first may lie before the buffer.
void Catalogue::add_random_derived() {
  std::mt19937_64 random(7);
  for (int number = 0; number < 8; ++number) {
    const int first = static_cast<int>(random() % 12) - 6;
    std::vector<int> places(16);
    for (int i = 0; i < 16; ++i) places[static_cast<std::size_t>(i)] = first + i;
    std::shuffle(places.begin(), places.end(), random);
    places.resize(4);
    std::vector<std::int64_t> offsets;
    for (const int place : places) offsets.push_back(place * 4);
    const MPI_Datatype scattered = indexed({1, 1, 1, 1}, places, MPI_INT);
    derive("random four ints " + std::to_string(number), resized(scattered, first * 4, 64), 0,
           ints(offsets));
  }
}

void Catalogue::make(const char* name, MPI_User_function* function, int commutes,
                     Operation operation) {
  MPI_Op handle;
  PMPI_Op_create(function, commutes, &handle);
  ops.push_back({name, handle, operation});
}

void Catalogue::add_ops() {
  ops = {{"max", MPI_MAX, Operation::max},          {"min", MPI_MIN, Operation::min},
         {"sum", MPI_SUM, Operation::sum},          {"prod", MPI_PROD, Operation::prod},
         {"land", MPI_LAND, Operation::land},       {"band", MPI_BAND, Operation::band},
         {"lor", MPI_LOR, Operation::lor},          {"bor", MPI_BOR, Operation::bor},
         {"lxor", MPI_LXOR, Operation::lxor},       {"bxor", MPI_BXOR, Operation::bxor},
         {"maxloc", MPI_MAXLOC, Operation::maxloc}, {"minloc", MPI_MINLOC, Operation::minloc}};
  make("sum of the user", &sum_up, 1, Operation::user_sum);
  make("matrix product", &multiply, 0, Operation::user_matrix);
  make("composition", &compose, 0, Operation::user_affine);
}

std::vector<std::size_t> Catalogue::legal(const Type& type) const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (allowed(ops[i].operation, type)) result.push_back(i);
  }
  return result;
}

}  // namespace test
