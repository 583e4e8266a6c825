// This file has collectives that block, collectives that are started and waited for later, and
// communicators that are made and freed in between.
#include <algorithm>
#include <memory>

#include "moves.hpp"

namespace mixed {

namespace {

// These collectives of MPI are under way while ranks do something else.
struct Started {
  const Comm* comm;
  std::size_t which;
  bool persistent;
  Data data;
  std::unique_ptr<Buffer> in, out;
  std::vector<std::int64_t> numbers, sums;
  MPI_Request request = MPI_REQUEST_NULL;

  std::uint64_t key(int from, int to) const {
    return mix(data.key + static_cast<std::uint64_t>(from) * 64 + static_cast<std::uint64_t>(to));
  }
  std::uint64_t own_key(int to) const { return key(comm->index, to); }
  void start();
  void finish(std::size_t how);
  void start_move();
  void start_sum();
  void check();
};

constexpr const char* names[] = {"Ibarrier", "Ibcast", "Iallreduce", "Iallgather", "Ialltoall"};

void Started::start() {
  if (which == 0) {
    MPI_Ibarrier(comm->handle, &request);
  } else if (which == 2) {
    start_sum();
  } else {
    start_move();
  }
}

void Started::start_sum() {
  numbers.resize(data.bytes / sizeof(std::int64_t));
  sums.resize(numbers.size(), -1);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = comm->index + static_cast<std::int64_t>(i);
  }
  const int count = static_cast<int>(numbers.size());
#if MPI_VERSION >= 4
  if (persistent) {
    MPI_Allreduce_init(numbers.data(), sums.data(), count, MPI_INT64_T, MPI_SUM, comm->handle,
                       MPI_INFO_NULL, &request);
    MPI_Start(&request);
    return;
  }
#endif
  MPI_Iallreduce(numbers.data(), sums.data(), count, MPI_INT64_T, MPI_SUM, comm->handle, &request);
}

void Started::start_move() {
  const auto size = static_cast<std::size_t>(comm->own->size());
  const int bytes = static_cast<int>(data.bytes);
  const std::size_t blocks_in = which == 4 ? size : 1, blocks_out = which == 1 ? 0 : size;
  in = std::make_unique<Buffer>(bytes_layout(), data.bytes * blocks_in, data.mapped);
  out = std::make_unique<Buffer>(bytes_layout(), data.bytes * blocks_out, !data.mapped);
  for (std::size_t i = 0; i < blocks_in; ++i) {
    in->fill(i * data.bytes, data.bytes, own_key(static_cast<int>(i)));
  }
  if (which == 1) {
    MPI_Ibcast(in->data(), bytes, MPI_BYTE, 0, comm->handle, &request);
  } else if (which == 3) {
    MPI_Iallgather(in->data(), bytes, MPI_BYTE, out->data(), bytes, MPI_BYTE, comm->handle,
                   &request);
  } else {
    MPI_Ialltoall(in->data(), bytes, MPI_BYTE, out->data(), bytes, MPI_BYTE, comm->handle,
                  &request);
  }
}

void Started::finish(std::size_t how) {
  complete({{&request, [](const MPI_Status&) {}}}, how);
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  check();
}

void Started::check() {
  const int size = comm->own->size();
  bool right = true;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    right &= sums[i] == size * (size - 1) / 2 + size * static_cast<std::int64_t>(i);
  }
  if (which == 1) right &= in->take(0, data.bytes, key(0, 0));
  for (int i = 0; (which == 3 || which == 4) && i < size; ++i) {
    const std::uint64_t expected = key(i, which == 4 ? comm->index : 0);
    right &= out->take(static_cast<std::size_t>(i) * data.bytes, data.bytes, expected);
  }
  digest_bytes(sums.data(), sums.size() * sizeof sums[0], data.key);
  expect(right, "what a collective gave that was started and waited for later");
}

}  // namespace

void add_collective_on(Schedule& schedule, const Comm& comm, double time) {
  if (schedule.random.chance(50)) {
    add_move(schedule, comm, time);
  } else {
    add_reduction(schedule, comm, time);
  }
}

void add_collective(Schedule& schedule, const World& world) {
  const Comm& comm = draw_comm(schedule.random, world);
  add_collective_on(schedule, comm, schedule.begin());
}

void add_pending_collective(Schedule& schedule, const World& world) {
  Random& random = schedule.random;
  const Comm& comm = draw_comm(random, world);
  const auto started = std::make_shared<Started>();
  started->comm = &comm;
  started->which = random.below(sizeof names / sizeof *names);
  started->persistent = random.chance(30);
  started->data = draw_data(random, 300000);
  const double start = schedule.begin();
  const std::string text = std::string(names[started->which]) + " of " +
                           std::to_string(started->data.bytes) + " B on " + comm.name;
  schedule.add(start, comm.ranks(), text, [started] { started->start(); });
  for (int rank = 0; rank < world_size; ++rank) {
    if ((comm.ranks() >> rank & 1) == 0) continue;
    const std::size_t how =
        started->persistent ? draw_way_of_persistent(random) : random.below(ways_to_complete);
    schedule.add(schedule.after(start), rank, std::string(way_name(how)) + " of " + text,
                 [started, how] { started->finish(how); });
  }
}

void add_made_communicator(Schedule& schedule, const World& world) {
  Random& random = schedule.random;
  const Comm& parent = draw_comm(random, world);
  const auto made = std::make_shared<Comm>();
  made->name = "a new one of " + parent.name;
  made->groups = parent.groups;
  const bool reversed = random.chance(50);
  if (reversed) {
    for (Group& group : made->groups) {
      std::reverse(group.world_ranks.begin(), group.world_ranks.end());
    }
  }
  double time = schedule.begin();
  schedule.add(time, parent.ranks(), "make " + made->name, [=, &parent] {
    if (reversed) {
      MPI_Comm_split(parent.handle, 0, -parent.index, &made->handle);
    } else {
      MPI_Comm_dup(parent.handle, &made->handle);
    }
    find_own(*made);
  });
  for (std::size_t n = random.between(3, 7); n > 0; --n) {
    time = schedule.after(time);
    add_collective_on(schedule, *made, time);
  }
  schedule.add(schedule.after(time), parent.ranks(), "free " + made->name,
               [made] { MPI_Comm_free(&made->handle); });
}

}  // namespace mixed
