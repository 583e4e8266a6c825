// This file has collectives that combine data. The result is the same in whatever order an MPI
// adds: the data are whole numbers, and for the user's operation remainders.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "moves.hpp"

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

struct Call {
  MPI_Comm comm;
  int size, me, root;
  bool in_place;
  Kind kind;
  std::size_t count;  // of the vector; of a block in Reduce_scatter_block
  std::uint64_t key;
};

class Vectors {
 public:
  Vectors(const Call& call, std::size_t elements)
      : call_(call),
        in_(bytes_layout(), elements * call.kind.bytes, call.key % 3 == 0),
        out_(bytes_layout(), elements * call.kind.bytes, call.key % 2 == 0) {
    call.kind.fill(in_.data(), elements, call.key, call.me);
    if (call.in_place) call.kind.fill(out_.data(), elements, call.key, call.me);
  }
  const void* in() { return call_.in_place ? MPI_IN_PLACE : in_.data(); }
  const void* own() { return in_.data(); }
  void* out() { return out_.data(); }
  // `elements` results from `begin` on, of ranks first to last, stand at the start of out().
  void check(std::size_t begin, std::size_t elements, int first, int last) {
    const std::size_t step = elements > 30000 ? 7 : 1;  // a few of very many
    char expected[16];
    bool right = true;
    for (std::size_t i = 0; i < elements; i += step) {
      call_.kind.combined(expected, begin + i, call_.key, first, last);
      right &= std::memcmp(expected, out_.element(i * call_.kind.bytes), call_.kind.bytes) == 0;
    }
    expect(right, "the numbers of a reduction");
    digest_bytes(out_.data(), elements * call_.kind.bytes, call_.key);
  }

 private:
  const Call& call_;
  Buffer in_, out_;
};

void allreduce(const Call& c) {
  Vectors v(c, c.count);
  MPI_Allreduce(v.in(), v.out(), static_cast<int>(c.count), c.kind.type, c.kind.op, c.comm);
  v.check(0, c.count, 0, c.size - 1);
}

void reduce(const Call& c) {
  Vectors v(c, c.count);
  MPI_Reduce(c.me == c.root ? v.in() : v.own(), v.out(), static_cast<int>(c.count), c.kind.type,
             c.kind.op, c.root, c.comm);
  if (c.me == c.root) v.check(0, c.count, 0, c.size - 1);
}

void scan(const Call& c) {
  Vectors v(c, c.count);
  MPI_Scan(v.in(), v.out(), static_cast<int>(c.count), c.kind.type, c.kind.op, c.comm);
  v.check(0, c.count, 0, c.me);
}

void exscan(const Call& c) {
  Vectors v(c, c.count);
  MPI_Exscan(v.in(), v.out(), static_cast<int>(c.count), c.kind.type, c.kind.op, c.comm);
  if (c.me > 0) v.check(0, c.count, 0, c.me - 1);
}

void reduce_scatter(const Call& c) {
  std::vector<int> counts;
  std::size_t begin = 0, all = 0;
  for (int i = 0; i < c.size; ++i) {
    counts.push_back(static_cast<int>(mix(c.key + static_cast<std::uint64_t>(i)) % (c.count + 1)));
    if (i < c.me) begin += static_cast<std::size_t>(counts.back());
    all += static_cast<std::size_t>(counts.back());
  }
  Vectors v(c, all);
  MPI_Reduce_scatter(v.in(), v.out(), counts.data(), c.kind.type, c.kind.op, c.comm);
  v.check(begin, static_cast<std::size_t>(counts[static_cast<std::size_t>(c.me)]), 0, c.size - 1);
}

void reduce_scatter_block(const Call& c) {
  Vectors v(c, c.count * static_cast<std::size_t>(c.size));
  MPI_Reduce_scatter_block(v.in(), v.out(), static_cast<int>(c.count), c.kind.type, c.kind.op,
                           c.comm);
  v.check(static_cast<std::size_t>(c.me) * c.count, c.count, 0, c.size - 1);
}

constexpr struct {
  const char* name;
  void (*run)(const Call&);
  bool of_blocks;
} reductions[] = {{"Allreduce", allreduce, false},
                  {"Allreduce", allreduce, false},
                  {"Reduce", reduce, false},
                  {"Scan", scan, false},
                  {"Exscan", exscan, false},
                  {"Reduce_scatter", reduce_scatter, true},
                  {"Reduce_scatter_block", reduce_scatter_block, true}};

}  // namespace

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

void add_reduction(Schedule& schedule, const Comm& comm, double time) {
  Random& random = schedule.random;
  const auto which = random.below(sizeof reductions / sizeof *reductions);
  const Kind kind = kind_of(random.next() >> 8);
  const bool in_place = random.chance(25);
  const std::size_t root = random.next() >> 8;
  const Data data = draw_data(random, reductions[which].of_blocks ? 100000 : 1000000);
  const std::size_t count = data.bytes / kind.bytes;
  schedule.add(
      time, comm.ranks(),
      std::string(reductions[which].name) + " (" + kind.name + ") of " +
          std::to_string(count * kind.bytes) + " B" + (in_place ? " in place" : "") + " on " +
          comm.name,
      [=, &comm] {
        const int size = comm.own->size();
        const auto at = static_cast<int>(root % static_cast<std::size_t>(size));
        reductions[which].run({comm.handle, size, comm.index, at, in_place, kind, count, data.key});
      });
}

}  // namespace mixed
