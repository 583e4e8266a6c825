// This file has blocking collectives that combine data.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kinds.hpp"
#include "moves.hpp"

namespace mixed {

namespace {

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
