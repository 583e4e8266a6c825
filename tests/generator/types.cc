#include "generator/types.hpp"

#include <algorithm>
#include <random>
#include <utility>

namespace generator {
namespace {

Scalar element(char code) {
  switch (code) {
    case 'd':
      return {0, 'f', 8};
    case 'c':
      return {0, 'i', 1};
    case 's':
      return {0, 'i', 2};
    default:
      return {0, 'i', 4};
  }
}

// Where elements lie, in the order of the type map; in bytes.
std::vector<std::int64_t> offsets(const Recipe& recipe) {
  if (recipe.maker == Recipe::Maker::structure) {
    return {recipe.places.begin(), recipe.places.end()};
  }
  std::vector<std::int64_t> result;
  const auto run = [&](int first, int length) {
    for (int i = first; i < first + length; ++i) {
      result.push_back(std::int64_t{i} * element(recipe.elements[0]).bytes);
    }
  };
  if (recipe.maker == Recipe::Maker::contiguous) {
    run(0, recipe.lengths[0]);
  } else if (recipe.maker == Recipe::Maker::vector) {
    for (int i = 0; i < recipe.lengths[0]; ++i) run(i * recipe.lengths[2], recipe.lengths[1]);
  } else {
    for (std::size_t i = 0; i < recipe.places.size(); ++i) run(recipe.places[i], recipe.lengths[i]);
  }
  return result;
}

std::vector<Scalar> type_map(const Recipe& recipe) {
  std::vector<Scalar> scalars;
  for (const std::int64_t offset : offsets(recipe)) {
    const std::size_t at = recipe.elements.size() == 1 ? 0 : scalars.size();
    Scalar scalar = element(recipe.elements[at]);
    scalar.offset = offset;
    scalars.push_back(scalar);
  }
  return scalars;
}

Recipe contiguous(int count, const char* element) {
  return {Recipe::Maker::contiguous, {count}, {}, element};
}
Recipe vector(int count, int length, int stride) {
  return {Recipe::Maker::vector, {count, length, stride}, {}, "i"};
}
Recipe indexed(std::vector<int> lengths, std::vector<int> places, const char* element = "i") {
  return {Recipe::Maker::indexed, std::move(lengths), std::move(places), element};
}
Recipe structure(std::vector<int> places, const char* elements) {
  return {Recipe::Maker::structure, {}, std::move(places), elements};
}
Recipe resized(Recipe recipe, int lower, int extent) {
  recipe.resized = true;
  recipe.lower = lower;
  recipe.extent = extent;
  return recipe;
}

bool is_any(Class of, std::initializer_list<Class> classes) {
  return std::find(classes.begin(), classes.end(), of) != classes.end();
}

// MPICH 5.0.2 and Open MPI 5.0 write beyond their memory in some reductions of derived types of
// which data lies before the buffer, or not where the extent begins. The drop-in may pass them on.
bool is_reducible(const Type& type, Interface of) {
  return type.of == Class::derived && type.family == 0 && type.name.rfind("random", 0) != 0 &&
         (type.low >= 0 || of == Interface::c);
}

bool is_user_legal(Operation operation, const Type& type, Interface of) {
  if (operation == Operation::user_affine) return type.name == "MPI_UINT64_T";
  if (operation == Operation::user_matrix) return is_reducible(type, of) && type.repeat == 1;
  return type.name == "MPI_INT" || type.name == "MPI_INT32_T" || type.name == "MPI_UINT32_T" ||
         is_reducible(type, of);
}

bool is_legal(Operation operation, const Type& type, Interface interface) {
  const Class of = type.of;
  const bool number =
      is_any(of, {Class::integer, Class::fortran_integer, Class::shared_integer, Class::real});
  switch (operation) {
    case Operation::max:
    case Operation::min:
      return number;
    case Operation::sum:
    case Operation::prod:
      return number || of == Class::complex;
    case Operation::land:
    case Operation::lor:
    case Operation::lxor:
      return is_any(of, {Class::integer, Class::logical});
    case Operation::band:
    case Operation::bor:
    case Operation::bxor:
      return of == Class::byte || (number && of != Class::real);
    case Operation::maxloc:
    case Operation::minloc:
      return of == Class::pair;
    default:
      return is_user_legal(operation, type, interface);
  }
}

}  // namespace

std::size_t Type::data_bytes() const {
  std::size_t bytes = 0;
  for (const Scalar& scalar : scalars) bytes += static_cast<std::size_t>(scalar.bytes);
  return bytes;
}

std::size_t Type::largest_scalar() const {
  int bytes = 1;
  for (const Scalar& scalar : scalars) bytes = std::max(bytes, scalar.bytes);
  return static_cast<std::size_t>(bytes);
}

int significant(const Scalar& scalar) {
  return scalar.kind == 'f' && scalar.bytes == 16 ? 10 : scalar.bytes;
}

void Catalogue::add(const std::string& name, Class of, char kind, int bytes) {
  std::vector<Scalar> scalars{{0, kind, bytes}};
  if (of == Class::complex) scalars = {{0, 'f', bytes / 2}, {bytes / 2, 'f', bytes / 2}};
  types.push_back({name, of, scalars, bytes, 0, bytes});
  if (name != "MPI_INT") return;
  types.back().family = 0;
  types.back().repeat = 4;
  families[0].push_back(types.size() - 1);
}

void Catalogue::add_pair(const std::string& name, Scalar first, Scalar second,
                         std::int64_t extent) {
  types.push_back({name, Class::pair, {first, second}, extent, 0, extent});
}

void Catalogue::derive(const std::string& name, int family, Recipe recipe) {
  Type type{name, Class::derived, type_map(recipe), 0, 0, 0, family};
  if (!type.scalars.empty()) {
    type.low = INT64_MAX;
    type.high = INT64_MIN;
  }
  for (const Scalar& scalar : type.scalars) {
    type.low = std::min(type.low, scalar.offset);
    type.high = std::max(type.high, scalar.offset + scalar.bytes);
  }
  type.recipe = std::move(recipe);
  if (family == 0) type.repeat = 4 / static_cast<int>(type.scalars.size());
  if (family >= 0) families[static_cast<std::size_t>(family)].push_back(types.size());
  types.push_back(std::move(type));
}

// Family 0 has four ints; family 1 has a double and an int.
void Catalogue::add_derived() {
  derive("contiguous(4 int)", 0, contiguous(4, "i"));
  derive("contiguous(2 int)", 0, contiguous(2, "i"));
  derive("vector(2 x 1 of 2 int)", 0, vector(2, 1, 2));
  derive("vector(2 x 2 of 3 int)", 0, vector(2, 2, 3));
  derive("vector(2 x 2 of 3 int) in 32", 0, resized(vector(2, 2, 3), 0, 32));
  derive("vector(4 x 1 of -2 int)", 0, vector(4, 1, -2));
  derive("indexed(2@3 1@0 1@6 int)", 0, indexed({2, 1, 1}, {3, 0, 6}));
  derive("indexed(1@3 2@0 1@2 int), dense", 0, indexed({1, 2, 1}, {3, 0, 2}));
  derive("indexed(2@2 2@5 int)", 0, indexed({2, 2}, {2, 5}));
  derive("indexed(2@-3 2@5 int)", 0, indexed({2, 2}, {-3, 5}));
  derive("contiguous(4 int) in [-4, 20)", 0, resized(contiguous(4, "i"), -4, 24));
  derive("contiguous(0 int)", -1, contiguous(0, "i"));
  derive("contiguous(3 double)", -1, contiguous(3, "d"));
  derive("indexed(3@0 5@4 1@11 char)", -1, indexed({3, 5, 1}, {0, 4, 11}, "c"));
  derive("struct(char@1, double@8, short@16)", -1, structure({1, 8, 16}, "cds"));
  derive("struct(double, int) in 16", 1, resized(structure({0, 8}, "di"), 0, 16));
  derive("struct(double@8, int@0)", 1, structure({8, 0}, "di"));
  derive("struct(double@-8, int@0) in [-8, 8)", 1, resized(structure({-8, 0}, "di"), -8, 16));
  add_random_derived();
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
    derive("random four ints " + std::to_string(number), 0,
           resized(indexed({1, 1, 1, 1}, places), first * 4, 64));
  }
}

std::vector<Operation> Catalogue::legal(const Type& type, Interface interface) {
  std::vector<Operation> result;
  for (int i = 0; i < operations; ++i) {
    const auto operation = static_cast<Operation>(i);
    if (is_legal(operation, type, interface)) result.push_back(operation);
  }
  return result;
}

}  // namespace generator
