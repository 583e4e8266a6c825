// Compares MPI_Alltoallw and MPI_Neighbor_alltoallw with PMPI's, byte for byte, on random types:
// both sides of a part have the same elements, laid out by trees of constructors that are drawn on
// each rank by itself. Rounds of the persistent forms are compared with PMPI's blocking calls, and
// the nonblocking forms with PMPI's. A plain MPI program; --cases N and --seed S choose what is
// drawn, and with --forms nonblocking (or persistent) it calls those.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "random_types.hpp"
#include "the_mpi.hpp"

namespace {

using namespace test;

int rank = 0;
int size = 0;
std::mt19937_64 shared;  // draws the same everywhere

// ---- parts and buffers

struct Elements {
  MPI_Datatype base;
  int count;
};

// What one rank sends to another, as both of them know it.
Elements between(std::uint64_t seed, int from, int to, int direction) {
  std::mt19937_64 random(seed + static_cast<std::uint64_t>((from * 64 + to) * 16 + direction));
  const MPI_Datatype bases[] = {MPI_BYTE, MPI_SHORT, MPI_INT, MPI_DOUBLE};
  const int limits[] = {1, 13, 100, 1000, 9000};
  const int limit = limits[below(random, 5)];
  const MPI_Datatype base = bases[below(random, 4)];
  return {base, below(random, limit)};
}

struct Side {
  std::vector<int> counts;
  std::vector<MPI_Aint> displacements;
  std::vector<MPI_Datatype> types;
  MPI_Aint end = 64;

  void add(const Elements& elements) {
    const int count = elements.count > 0 ? divisor_of(elements.count) : 0;
    MPI_Datatype type =
        tree(elements.base, elements.count > 0 ? elements.count / count : 1, below(own, 4));
    type = spaced(type);
    MPI_Type_commit(&type);
    MPI_Aint lower;
    MPI_Aint extent;
    MPI_Type_get_extent(type, &lower, &extent);
    const TypeBounds one = bounds(type);
    counts.push_back(count);
    types.push_back(type);
    displacements.push_back(end - one.low);
    if (count > 0) end += (count - 1) * extent + one.bytes;
    end += below(own, 40);
  }
  // With addresses in the types, for MPI_BOTTOM.
  void make_absolute(const char* data) {
    MPI_Aint address;
    MPI_Get_address(data, &address);
    for (std::size_t k = 0; k < types.size(); ++k) {
      const MPI_Aint at = address + displacements[k];
      MPI_Datatype made;
      MPI_Type_create_hindexed_block(1, 1, &at, types[k], &made);
      MPI_Aint lower;
      MPI_Aint extent;
      MPI_Type_get_extent(types[k], &lower, &extent);
      MPI_Datatype resized;
      MPI_Type_create_resized(made, at + lower, extent, &resized);
      MPI_Type_free(&made);
      MPI_Type_commit(&resized);
      MPI_Type_free(&types[k]);
      types[k] = resized;
      displacements[k] = 0;
    }
  }
  std::vector<int> ints() const { return {displacements.begin(), displacements.end()}; }
  std::vector<MPI_Count> large() const { return {counts.begin(), counts.end()}; }
  // With types of its own.
  Side copy() const {
    Side made = *this;
    for (std::size_t k = 0; k < types.size(); ++k) MPI_Type_dup(types[k], &made.types[k]);
    return made;
  }
  void free() {
    for (MPI_Datatype& type : types) MPI_Type_free(&type);
  }
};

void fill(const MemoryBuffer& buffer, int salt) {
  std::mt19937_64 random(static_cast<std::uint64_t>(salt) + 1);
  for (std::size_t i = 0; i < buffer.bytes(); ++i) {
    buffer.data()[i] = static_cast<char>(random());
  }
}

bool same(const MemoryBuffer& one, const MemoryBuffer& other) {
  return std::memcmp(one.data(), other.data(), one.bytes()) == 0;
}

void compare(const std::string& what, const MemoryBuffer& got, const MemoryBuffer& expected) {
  for (std::size_t i = 0; i < got.bytes(); ++i) {
    if (got.data()[i] == expected.data()[i]) continue;
    std::fprintf(stderr, "rank %d, %s: byte %zu of %zu differs\n", rank, what.c_str(), i,
                 got.bytes());
    ++failures;
    return;
  }
}

bool all_in_arena = false;  // on all ranks
BufferMemory any_memory() {
  return all_in_arena ? BufferMemory::arena : static_cast<BufferMemory>(below(own, 3));
}

// The receive buffers of a call: by the drop-in, and by MPI itself.
struct Received {
  Received(BufferMemory memory, const Side& side, int salt)
      : by_us(memory, static_cast<std::size_t>(side.end + 64)),
        by_mpi(memory, static_cast<std::size_t>(side.end + 64)) {
    fill(by_us, salt);
    fill(by_mpi, salt);
  }
  MemoryBuffer by_us;
  MemoryBuffer by_mpi;
};

// ---- the calls

enum class Form { blocking, nonblocking, persistent };
Form forms = Form::blocking;  // called besides the blocking one

// One exchange, with counts of either width.
struct Exchange {
  const void* send;
  const Side& from;
  const Side& to;
  MPI_Comm comm;
  bool stays = false;  // in place
  std::vector<int> out = from.ints();
  std::vector<int> in = to.ints();
  std::vector<MPI_Count> large_sent = from.large();
  std::vector<MPI_Count> large_received = to.large();

  const int* sent() const { return stays ? nullptr : from.counts.data(); }
  const int* sent_at() const { return stays ? nullptr : out.data(); }
  const MPI_Count* sent_large() const { return stays ? nullptr : large_sent.data(); }
  const MPI_Aint* sent_at_large() const { return stays ? nullptr : from.displacements.data(); }
  const MPI_Datatype* types() const { return stays ? nullptr : from.types.data(); }
};

#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define TEST_PERSISTENT(call) call
constexpr bool has_persistent = true;
#else
#define TEST_PERSISTENT(call) (void)0
constexpr bool has_persistent = false;
#endif

void alltoallw(const Exchange& x, Form form, char* to, MPI_Request* request) {
  switch (form) {
    case Form::blocking:
      MPI_Alltoallw(x.send, x.sent(), x.sent_at(), x.types(), to, x.to.counts.data(), x.in.data(),
                    x.to.types.data(), x.comm);
      break;
    case Form::nonblocking:
      MPI_Ialltoallw(x.send, x.sent(), x.sent_at(), x.types(), to, x.to.counts.data(), x.in.data(),
                     x.to.types.data(), x.comm, request);
      break;
    default:
      TEST_PERSISTENT(MPI_Alltoallw_init(x.send, x.sent(), x.sent_at(), x.types(), to,
                                         x.to.counts.data(), x.in.data(), x.to.types.data(), x.comm,
                                         MPI_INFO_NULL, request));
  }
}
void neighbour_alltoallw(const Exchange& x, Form form, char* to, MPI_Request* request) {
  const MPI_Aint* at = x.from.displacements.data();
  const MPI_Aint* to_at = x.to.displacements.data();
  switch (form) {
    case Form::blocking:
      MPI_Neighbor_alltoallw(x.send, x.sent(), at, x.types(), to, x.to.counts.data(), to_at,
                             x.to.types.data(), x.comm);
      break;
    case Form::nonblocking:
      MPI_Ineighbor_alltoallw(x.send, x.sent(), at, x.types(), to, x.to.counts.data(), to_at,
                              x.to.types.data(), x.comm, request);
      break;
    default:
      TEST_PERSISTENT(MPI_Neighbor_alltoallw_init(x.send, x.sent(), at, x.types(), to,
                                                  x.to.counts.data(), to_at, x.to.types.data(),
                                                  x.comm, MPI_INFO_NULL, request));
  }
}

#if MPI_VERSION >= 4
constexpr bool has_large = true;
void large_alltoallw(const Exchange& x, Form form, char* to, MPI_Request* request) {
  const MPI_Count* received = x.large_received.data();
  const MPI_Aint* at = x.to.displacements.data();
  if (form == Form::blocking) {
    MPI_Alltoallw_c(x.send, x.sent_large(), x.sent_at_large(), x.types(), to, received, at,
                    x.to.types.data(), x.comm);
  } else if (form == Form::nonblocking) {
    MPI_Ialltoallw_c(x.send, x.sent_large(), x.sent_at_large(), x.types(), to, received, at,
                     x.to.types.data(), x.comm, request);
  } else {
    MPI_Alltoallw_init_c(x.send, x.sent_large(), x.sent_at_large(), x.types(), to, received, at,
                         x.to.types.data(), x.comm, MPI_INFO_NULL, request);
  }
}
void large_neighbour_alltoallw(const Exchange& x, Form form, char* to, MPI_Request* request) {
  const MPI_Count* received = x.large_received.data();
  const MPI_Aint* at = x.to.displacements.data();
  if (form == Form::blocking) {
    MPI_Neighbor_alltoallw_c(x.send, x.sent_large(), x.sent_at_large(), x.types(), to, received, at,
                             x.to.types.data(), x.comm);
  } else if (form == Form::nonblocking) {
    MPI_Ineighbor_alltoallw_c(x.send, x.sent_large(), x.sent_at_large(), x.types(), to, received,
                              at, x.to.types.data(), x.comm, request);
  } else {
    MPI_Neighbor_alltoallw_init_c(x.send, x.sent_large(), x.sent_at_large(), x.types(), to,
                                  received, at, x.to.types.data(), x.comm, MPI_INFO_NULL, request);
  }
}
#else
constexpr bool has_large = false;
void large_alltoallw(const Exchange&, Form, char*, MPI_Request*) {}
void large_neighbour_alltoallw(const Exchange&, Form, char*, MPI_Request*) {}
#endif

void by_mpi(const Exchange& x, bool among_neighbours, Form form, char* to) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int* counts = x.to.counts.data();
  const MPI_Datatype* types = x.to.types.data();
  const MPI_Aint* at = x.from.displacements.data();
  const MPI_Aint* to_at = x.to.displacements.data();
  // MPIs pair the blocks of double neighbours differently by form.
  if (among_neighbours && form == Form::nonblocking) {
    PMPI_Ineighbor_alltoallw(x.send, x.sent(), at, x.types(), to, counts, to_at, types, x.comm,
                             &request);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (among_neighbours) {
    PMPI_Neighbor_alltoallw(x.send, x.sent(), at, x.types(), to, counts, to_at, types, x.comm);
  } else {
    PMPI_Alltoallw(x.send, x.sent(), x.sent_at(), x.types(), to, counts, x.in.data(), types,
                   x.comm);
  }
}

// Part by part, by MPI's packing and messages alone.
void by_packing(const Exchange& x, char* to) {
  for (int step = 0; step < size; ++step) {
    const int peer = (rank + step) % size;
    const int source = (rank + size - step) % size;
    const auto out = static_cast<std::size_t>(peer);
    const auto in = static_cast<std::size_t>(source);
    int bytes = 0;
    MPI_Pack_size(x.from.counts[out], x.from.types[out], x.comm, &bytes);
    std::vector<char> sent(static_cast<std::size_t>(bytes) + 1);
    MPI_Pack_size(x.to.counts[in], x.to.types[in], x.comm, &bytes);
    std::vector<char> got(static_cast<std::size_t>(bytes) + 1);
    int end = 0;
    const char* base = static_cast<const char*>(x.send) + x.from.displacements[out];
    MPI_Pack(base, x.from.counts[out], x.from.types[out], sent.data(),
             static_cast<int>(sent.size()), &end, x.comm);
    PMPI_Sendrecv(sent.data(), end, MPI_PACKED, peer, 99, got.data(), bytes, MPI_PACKED, source, 99,
                  x.comm, MPI_STATUS_IGNORE);
    end = 0;
    MPI_Unpack(got.data(), bytes, &end, to + x.to.displacements[in], x.to.counts[in],
               x.to.types[in], x.comm);
  }
}

// Where MPI's call gives something else: Open MPI 5.0.11 loses bytes of an alltoallw now and then.
void mend_by_packing(const Exchange& x, Received& received, int salt) {
  int differs = same(received.by_us, received.by_mpi) ? 0 : 1;
  PMPI_Allreduce(MPI_IN_PLACE, &differs, 1, MPI_INT, MPI_MAX, x.comm);
  if (differs == 0) return;
  fill(received.by_mpi, salt);
  by_packing(x, received.by_mpi.data());
}

Form draw_form(bool served_persistent) {
  if (below(shared, 3) == 0 || (forms == Form::persistent && !served_persistent)) {
    return Form::blocking;
  }
  return forms;
}

// The call of a form by the drop-in, and each of its rounds against MPI itself. The types are gone
// before the end.
void compare_exchange(const char* what, MemoryBuffer* send, Side& from, Side& to, Exchange& by_us,
                      bool among_neighbours, bool served_persistent) {
  Received received(any_memory(), to, rank);
  Side from_kept = from.copy();
  Side to_kept = to.copy();
  const Exchange kept{by_us.send, from_kept, to_kept, by_us.comm, by_us.stays};
  const Form form = draw_form(served_persistent);
  const bool large = has_large && below(shared, 2) == 0;
  const auto one = among_neighbours ? large ? &large_neighbour_alltoallw : &neighbour_alltoallw
                   : large          ? &large_alltoallw
                                    : &alltoallw;
  MPI_Request request = MPI_REQUEST_NULL;
  const int rounds = form == Form::persistent ? 3 : 1;
  if (send != nullptr) fill(*send, 1000 + rank);
  one(by_us, form, received.by_us.data(), &request);
  from.free();
  to.free();
  for (int round = 0; round < rounds; ++round) {
    if (form == Form::persistent) {
      if (send != nullptr) fill(*send, 1000 * round + rank);
      fill(received.by_us, rank + round);
      fill(received.by_mpi, rank + round);
      MPI_Start(&request);
    }
    if (below(shared, 2) == 0) MPI_Barrier(by_us.comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    by_mpi(kept, among_neighbours, form, received.by_mpi.data());
    if (!among_neighbours && !kept.stays) mend_by_packing(kept, received, rank + round);
    compare(what, received.by_us, received.by_mpi);
  }
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  from_kept.free();
  to_kept.free();
}

void all_to_all(MPI_Comm comm, std::uint64_t seed) {
  Side from;
  Side to;
  for (int peer = 0; peer < size; ++peer) {
    from.add(between(seed, rank, peer, 0));
    to.add(between(seed, peer, rank, 0));
  }
  MemoryBuffer send(any_memory(), static_cast<std::size_t>(from.end + 64));
  const bool bottom = below(own, 4) == 0;
  if (bottom) from.make_absolute(send.data());
  Exchange by_us{bottom ? MPI_BOTTOM : send.data(), from, to, comm};
  compare_exchange("alltoallw", &send, from, to, by_us, false, true);
}

// Pairs of ranks send each other the same elements.
void in_place(MPI_Comm comm, std::uint64_t seed) {
  Side to;
  for (int peer = 0; peer < size; ++peer) {
    to.add(between(seed, std::min(rank, peer), std::max(rank, peer), 3));
  }
  Side none;
  Exchange by_us{MPI_IN_PLACE, none, to, comm, true};
  compare_exchange("in place", nullptr, none, to, by_us, false, true);
}

bool served_among_neighbours(const Side& from, const Side& to, MPI_Comm comm) {
  int most = static_cast<int>(std::max(from.counts.size(), to.counts.size()));
  PMPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, comm);
  return most <= 16 && size > 1;
}

void exchange(const char* what, Side& from, Side& to, MPI_Comm comm) {
  MemoryBuffer send(any_memory(), static_cast<std::size_t>(from.end + 64));
  Exchange by_us{send.data(), from, to, comm};
  // Where MPI serves them, persistent forms may pair the blocks of double neighbours in their way.
  compare_exchange(what, &send, from, to, by_us, true, served_among_neighbours(from, to, comm));
}

// Up to two edges from each rank to each, itself too; those of a pair have the same elements.
void graph(std::uint64_t seed) {
  std::vector<int> sources;
  std::vector<int> destinations;
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      const int edges = below(shared, 3);
      if (to == rank) sources.insert(sources.end(), static_cast<std::size_t>(edges), from);
      if (from == rank)
        destinations.insert(destinations.end(), static_cast<std::size_t>(edges), to);
    }
  }
  std::shuffle(sources.begin(), sources.end(), own);
  std::shuffle(destinations.begin(), destinations.end(), own);
  const std::vector<int> weights(2 * static_cast<std::size_t>(size) + 1, 1);
  MPI_Comm comm;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(sources.size()), sources.data(),
                                 weights.data(), static_cast<int>(destinations.size()),
                                 destinations.data(), weights.data(), MPI_INFO_NULL, 0, &comm);
  for (int call = 0; call < 4; ++call) {
    Side from;
    Side to;
    for (const int peer : destinations) from.add(between(seed, rank, peer, call));
    for (const int peer : sources) to.add(between(seed, peer, rank, call));
    exchange("graph", from, to, comm);
  }
  MPI_Comm_free(&comm);
}

void neighbours(std::uint64_t seed) {
  const int dimensions = 1 + below(shared, 3);
  std::vector<int> extents(static_cast<std::size_t>(dimensions), 0);
  MPI_Dims_create(size, dimensions, extents.data());
  std::vector<int> periods;
  for (int d = 0; d < dimensions; ++d) periods.push_back(below(shared, 2));
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, extents.data(), periods.data(), 0, &grid);
  for (int call = 0; call < 4; ++call) {
    Side from;
    Side to;
    for (int d = 0; d < dimensions; ++d) {
      int peers[2];
      MPI_Cart_shift(grid, d, 1, peers, peers + 1);
      // MPIs pair the blocks of double neighbours differently: both get the same elements.
      const bool tight = periods[static_cast<std::size_t>(d)] != 0 && peers[0] == peers[1];
      for (int k = 0; k < 2; ++k) {
        const int direction = tight ? 2 * d : 2 * d + k;
        const bool there = peers[k] != MPI_PROC_NULL;
        const Elements none{MPI_INT, 3};
        from.add(there ? between(seed, rank, peers[k], direction) : none);
        to.add(there ? between(seed, peers[k], rank, tight ? direction : direction ^ 1) : none);
      }
    }
    exchange("neighbours", from, to, grid);
  }
  MPI_Comm_free(&grid);
}

// Even ranks on one side, odd ones on the other: MPI's own, with or without the drop-in.
void between_groups() {
  if (size < 2) return;
  MPI_Comm half;
  MPI_Comm inter;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
  int others = 0;
  MPI_Comm_remote_size(inter, &others);
  const auto count = static_cast<std::size_t>(others);
  const std::vector<int> ones(count, 1);
  std::vector<int> at(count);
  for (std::size_t i = 0; i < count; ++i) at[i] = static_cast<int>(i * sizeof(int));
  const std::vector<MPI_Datatype> types(count, MPI_INT);
  std::vector<int> sent(count, rank);
  std::vector<int> got(count, -1);
  for (int call = 0; call < 4; ++call) {
    MPI_Alltoallw(sent.data(), ones.data(), at.data(), types.data(), got.data(), ones.data(),
                  at.data(), types.data(), inter);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (got[i] != 2 * static_cast<int>(i) + 1 - rank % 2) ++failures;
  }
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) != "--forms") continue;
    forms = std::string(argv[i + 1]) == "persistent" ? Form::persistent : Form::nonblocking;
  }
  if (forms == Form::persistent && !has_persistent) return 77;
  int level = 0;
  const int wanted = forms == Form::nonblocking ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, wanted, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  end_after(240);
  int cases = 20;
  std::uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--cases") cases = std::atoi(argv[i + 1]);
    if (std::string(argv[i]) == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  shared.seed(seed);
  own.seed(seed * 1000 + static_cast<std::uint64_t>(rank));
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 3; ++i) MPI_Barrier(comm);
  for (int one = 0; one < cases; ++one) {
    const std::uint64_t drawn = shared() >> 8;
    all_in_arena = below(shared, 2) == 0;
    now("alltoallw");
    for (unsigned call = 0; call < 4; ++call) all_to_all(comm, drawn + call);
    now("in place");
    in_place(comm, drawn);
    now("neighbours");
    neighbours(drawn);
    now("graph");
    graph(drawn);
  }
  now("intercommunicator");
  between_groups();
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("alltoallw: %d cases, %d failures\n", cases, failures);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return failures != 0 ? 1 : 0;
}
