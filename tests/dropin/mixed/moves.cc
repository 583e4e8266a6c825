// This file has collectives that move data. Every rank knows what each must hold afterwards.
#include "moves.hpp"

#include <memory>

namespace mixed {

namespace {

struct Call {
  MPI_Comm comm;
  int size, me, root;
  bool in_place;
  Data data;  // of a block

  std::uint64_t key(int from, int to = 0) const {
    return mix(data.key + static_cast<std::uint64_t>(from) * 64 + static_cast<std::uint64_t>(to));
  }
  Buffer buffer(int side, int blocks) const {
    return {data.layout(side), data.count(side) * static_cast<std::size_t>(blocks),
            data.mapped != (side % 2 == 0)};
  }
  int count(int side) const { return static_cast<int>(data.count(side)); }
  void fill(Buffer& buffer, int block, std::uint64_t with) const {
    const std::size_t each = buffer.elements() == 0 ? 0 : data.bytes / buffer.layout().size;
    buffer.fill(static_cast<std::size_t>(block) * each, each, with);
  }
  void take(Buffer& buffer, int block, std::uint64_t expected) const {
    const std::size_t each = buffer.elements() == 0 ? 0 : data.bytes / buffer.layout().size;
    expect(buffer.take(static_cast<std::size_t>(block) * each, each, expected),
           "the bytes of a collective");
  }
};

void finish(const Buffer& buffer) {
  expect(buffer.untouched(), "nothing else was written by a collective");
}

void bcast(const Call& c) {
  Buffer buffer = c.buffer(c.me, 1);
  if (c.me == c.root) c.fill(buffer, 0, c.key(c.root));
  MPI_Bcast(buffer.data(), c.count(c.me), buffer.layout().type, c.root, c.comm);
  c.take(buffer, 0, c.key(c.root));
  finish(buffer);
}

void gather(const Call& c) {
  const bool here = c.me == c.root;
  Buffer in = c.buffer(c.me, 1), out = c.buffer(c.me + 1, here ? c.size : 0);
  c.fill(in, 0, c.key(c.me));
  if (here && c.in_place) c.fill(out, c.me, c.key(c.me));
  void* const from = here && c.in_place ? MPI_IN_PLACE : in.data();
  MPI_Gather(from, c.count(c.me), in.layout().type, out.data(), c.count(c.me + 1),
             out.layout().type, c.root, c.comm);
  for (int i = 0; here && i < c.size; ++i) c.take(out, i, c.key(i));
  finish(out);
}

void scatter(const Call& c) {
  const bool here = c.me == c.root;
  Buffer in = c.buffer(c.me, here ? c.size : 0), out = c.buffer(c.me + 1, 1);
  for (int i = 0; here && i < c.size; ++i) c.fill(in, i, c.key(i));
  void* const to = here && c.in_place ? MPI_IN_PLACE : out.data();
  MPI_Scatter(in.data(), c.count(c.me), in.layout().type, to, c.count(c.me + 1), out.layout().type,
              c.root, c.comm);
  if (to != MPI_IN_PLACE) c.take(out, 0, c.key(c.me));
  finish(out);
}

void allgather(const Call& c) {
  Buffer in = c.buffer(c.me, 1), out = c.buffer(c.me + 1, c.size);
  c.fill(in, 0, c.key(c.me));
  if (c.in_place) c.fill(out, c.me, c.key(c.me));
  MPI_Allgather(c.in_place ? MPI_IN_PLACE : in.data(), c.count(c.me), in.layout().type, out.data(),
                c.count(c.me + 1), out.layout().type, c.comm);
  for (int i = 0; i < c.size; ++i) c.take(out, i, c.key(i));
  finish(out);
}

void alltoall(const Call& c) {
  Buffer in = c.buffer(c.me, c.size), out = c.buffer(c.in_place ? 0 : c.me + 1, c.size);
  for (int i = 0; i < c.size; ++i) c.fill(in, i, c.key(c.me, i));
  // In place, blocks of one rank have the same type on all.
  if (c.in_place) {
    for (int i = 0; i < c.size; ++i) c.fill(out, i, c.key(c.me, i));
  }
  MPI_Alltoall(c.in_place ? MPI_IN_PLACE : in.data(), c.count(c.me), in.layout().type, out.data(),
               static_cast<int>(c.data.bytes / out.layout().size), out.layout().type, c.comm);
  for (int i = 0; i < c.size; ++i) c.take(out, i, c.key(i, c.me));
  finish(out);
}

// Blocks of other sizes on every rank, in another order and with gaps; of bytes.
class Blocks {
 public:
  // The block of rank i has sizes[i] bytes.
  explicit Blocks(const std::vector<int>& sizes) : counts(sizes), places(sizes.size()) {
    int at = 0;
    for (std::size_t i = sizes.size(); i-- > 0;) {
      places[i] = at + 3;
      at += 3 + sizes[i];
    }
    buffer = std::make_unique<Buffer>(bytes_layout(), static_cast<std::size_t>(at), at % 2 == 0);
  }
  void fill(int block, std::uint64_t key) {
    const auto i = static_cast<std::size_t>(block);
    buffer->fill(static_cast<std::size_t>(places[i]), static_cast<std::size_t>(counts[i]), key);
  }
  void take(int block, std::uint64_t key) {
    const auto i = static_cast<std::size_t>(block);
    expect(
        buffer->take(static_cast<std::size_t>(places[i]), static_cast<std::size_t>(counts[i]), key),
        "the bytes of a collective with counts");
  }
  std::vector<int> counts, places;
  std::unique_ptr<Buffer> buffer;
};

int bytes_between(const Call& c, int from, int to) {
  return static_cast<int>(mix(c.key(from, to) ^ 5) % (c.data.bytes + 1));
}

std::vector<int> sizes_of(const Call& c) {
  std::vector<int> sizes;
  for (int i = 0; i < c.size; ++i) sizes.push_back(bytes_between(c, i, 0));
  return sizes;
}

void gatherv(const Call& c) {
  const std::vector<int> sizes = sizes_of(c);
  const bool here = c.me == c.root;
  const int own = sizes[static_cast<std::size_t>(c.me)];
  Blocks out(here ? sizes : std::vector<int>(sizes.size(), 0)), in({own});
  in.fill(0, c.key(c.me));
  if (here && c.in_place) out.fill(c.me, c.key(c.me));
  MPI_Gatherv(here && c.in_place ? MPI_IN_PLACE : in.buffer->element(3), own, MPI_BYTE,
              out.buffer->data(), out.counts.data(), out.places.data(), MPI_BYTE, c.root, c.comm);
  for (int i = 0; here && i < c.size; ++i) out.take(i, c.key(i));
  finish(*out.buffer);
}

void scatterv(const Call& c) {
  const std::vector<int> sizes = sizes_of(c);
  const bool here = c.me == c.root;
  const int own = sizes[static_cast<std::size_t>(c.me)];
  Blocks in(here ? sizes : std::vector<int>(sizes.size(), 0)), out({own});
  for (int i = 0; here && i < c.size; ++i) in.fill(i, c.key(i));
  MPI_Scatterv(in.buffer->data(), in.counts.data(), in.places.data(), MPI_BYTE,
               out.buffer->element(3), own, MPI_BYTE, c.root, c.comm);
  out.take(0, c.key(c.me));
  finish(*out.buffer);
}

void allgatherv(const Call& c) {
  const std::vector<int> sizes = sizes_of(c);
  const int own = sizes[static_cast<std::size_t>(c.me)];
  Blocks out(sizes), in({own});
  in.fill(0, c.key(c.me));
  if (c.in_place) out.fill(c.me, c.key(c.me));
  MPI_Allgatherv(c.in_place ? MPI_IN_PLACE : in.buffer->element(3), own, MPI_BYTE,
                 out.buffer->data(), out.counts.data(), out.places.data(), MPI_BYTE, c.comm);
  for (int i = 0; i < c.size; ++i) out.take(i, c.key(i));
  finish(*out.buffer);
}

void alltoallv(const Call& c) {
  std::vector<int> sent, received;
  for (int i = 0; i < c.size; ++i) {
    sent.push_back(bytes_between(c, c.me, i));
    received.push_back(bytes_between(c, i, c.me));
  }
  Blocks in(sent), out(received);
  for (int i = 0; i < c.size; ++i) in.fill(i, c.key(c.me, i));
  MPI_Alltoallv(in.buffer->data(), in.counts.data(), in.places.data(), MPI_BYTE, out.buffer->data(),
                out.counts.data(), out.places.data(), MPI_BYTE, c.comm);
  for (int i = 0; i < c.size; ++i) out.take(i, c.key(i, c.me));
  finish(*out.buffer);
}

void barrier(const Call& c) { MPI_Barrier(c.comm); }

constexpr struct {
  const char* name;
  void (*run)(const Call&);
  bool takes_in_place;
} moves[] = {
    {"Barrier", barrier, false},      {"Bcast", bcast, false},
    {"Gather", gather, true},         {"Scatter", scatter, true},
    {"Allgather", allgather, true},   {"Alltoall", alltoall, true},
    {"Gatherv", gatherv, true},       {"Scatterv", scatterv, false},
    {"Allgatherv", allgatherv, true}, {"Alltoallv", alltoallv, false},
};

}  // namespace

void add_move(Schedule& schedule, const Comm& comm, double time) {
  Random& random = schedule.random;
  const auto which = random.below(sizeof moves / sizeof *moves);
  const bool in_place = random.chance(25) && moves[which].takes_in_place;
  const std::size_t root = random.next() >> 8;
  const Data data = draw_data(random, which == 1 ? std::size_t{2} << 20 : 200000);
  schedule.add(time, comm.ranks(),
               std::string(moves[which].name) + " of " + std::to_string(data.bytes) + " B" +
                   (data.derived ? " derived" : "") + (in_place ? " in place" : "") + " on " +
                   comm.name,
               [=, &comm] {
                 const int size = comm.own->size();
                 const auto at = static_cast<int>(root % static_cast<std::size_t>(size));
                 moves[which].run({comm.handle, size, comm.index, at, in_place, data});
               });
}

}  // namespace mixed
