// The data are whole numbers, and for the user's operation remainders, so that the result is the
// same in whatever order an MPI adds.
#include "kinds.hpp"

#include <cstring>

#include "actions.hpp"

namespace mixed {

namespace {

MPI_Op compose_op = MPI_OP_NULL, join_op = MPI_OP_NULL;
MPI_Datatype map_type = MPI_DATATYPE_NULL;

// x -> a x + b of 32 bits: composing two is associative and not commutative.
struct Map {
  std::uint32_t a, b;
};

Map compose(Map first, Map second) { return {first.a * second.a, first.a * second.b + first.b}; }

void compose_maps(void* in, void* inout, int* count, MPI_Datatype*) {
  const Map* left = static_cast<const Map*>(in);
  Map* right = static_cast<Map*>(inout);
  for (int i = 0; i < *count; ++i) right[i] = compose(left[i], right[i]);
}

void join_words(void* in, void* inout, int* count, MPI_Datatype*) {
  const std::int64_t* left = static_cast<const std::int64_t*>(in);
  std::int64_t* right = static_cast<std::int64_t*>(inout);
  for (int i = 0; i < *count; ++i) right[i] = (left[i] + right[i]) % 1000003;
}

template <class T>
T number(std::uint64_t key, int rank, std::size_t i) {
  return static_cast<T>(mix(key + static_cast<std::uint64_t>(rank) * 7919 + i) % 100);
}
template <>
Map number<Map>(std::uint64_t key, int rank, std::size_t i) {
  const std::uint64_t drawn = mix(key + static_cast<std::uint64_t>(rank) * 7919 + i);
  return {static_cast<std::uint32_t>(drawn | 1), static_cast<std::uint32_t>(drawn >> 32)};
}

template <class T>
void fill_numbers(void* at, std::size_t elements, std::uint64_t key, int rank) {
  T* out = static_cast<T*>(at);
  for (std::size_t i = 0; i < elements; ++i) out[i] = number<T>(key, rank, i);
}

template <class T, T (*join)(T, T)>
void combine_numbers(void* at, std::size_t i, std::uint64_t key, int first, int last) {
  T value = number<T>(key, first, i);
  for (int rank = first + 1; rank <= last; ++rank) value = join(value, number<T>(key, rank, i));
  std::memcpy(at, &value, sizeof value);
}

template <class T>
T add(T a, T b) {
  return static_cast<T>(a + b);
}
template <class T>
T larger(T a, T b) {
  return a < b ? b : a;
}
template <class T>
T differ(T a, T b) {
  return a ^ b;
}
std::int64_t join(std::int64_t a, std::int64_t b) { return (a + b) % 1000003; }

template <class T, T (*join)(T, T)>
Kind kind(const char* name, MPI_Datatype type, MPI_Op op) {
  return {name, type, op, sizeof(T), fill_numbers<T>, combine_numbers<T, join>};
}

}  // namespace

Kind kind_of(std::size_t which) {
  switch (which % 8) {
    case 0:
      return kind<int, add<int>>("int sum", MPI_INT, MPI_SUM);
    case 1:
      return kind<double, add<double>>("double sum", MPI_DOUBLE, MPI_SUM);
    case 2:
      return kind<float, larger<float>>("float max", MPI_FLOAT, MPI_MAX);
    case 3:
      return kind<std::int64_t, add<std::int64_t>>("int64 sum", MPI_INT64_T, MPI_SUM);
    case 4:
      return kind<unsigned char, differ<unsigned char>>("byte xor", MPI_UNSIGNED_CHAR, MPI_BXOR);
    case 5:
      return kind<unsigned short, larger<unsigned short>>("short max", MPI_UNSIGNED_SHORT, MPI_MAX);
    case 6:
      return kind<Map, compose>("user's, not commutative", map_type, compose_op);
    default:
      return kind<std::int64_t, join>("user's, commutative", MPI_INT64_T, join_op);
  }
}

void make_operations() {
  MPI_Op_create(&compose_maps, 0, &compose_op);
  MPI_Op_create(&join_words, 1, &join_op);
  MPI_Type_contiguous(2, MPI_UINT32_T, &map_type);
  MPI_Type_commit(&map_type);
}

void free_operations() {
  MPI_Op_free(&compose_op);
  MPI_Op_free(&join_op);
  MPI_Type_free(&map_type);
}

}  // namespace mixed
