// This file has messages that are set up once and started several times: persistent and partitioned
// ones.
#include <memory>

#include "actions.hpp"

namespace mixed {

namespace {

constexpr std::size_t most_bytes = 400000;

// A pair of ranks and what goes from the first to the second in each round.
struct Pair {
  const Comm* comm;
  int source, destination, from, to, tag;
  bool acknowledged;
  std::size_t partitions = 1;
  Data data;
  std::unique_ptr<Buffer> out, in;
  MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL;

  std::string text() const {
    return std::to_string(data.bytes) + " B, " + std::to_string(from) + " to " +
           std::to_string(to) + ", tag " + std::to_string(tag) + " on " + comm->name;
  }
  std::uint64_t key(std::size_t round) const { return mix(data.key + round); }
  void make_buffers();
  void set_up();
  void start(std::size_t round);
  void wait(std::size_t round, std::size_t how);
  void free();
#if MPI_VERSION >= 4
  void set_up_partitioned();
  void ready(std::size_t first, std::size_t step);
  void look() const;
#endif
};

void Pair::make_buffers() {
  out = std::make_unique<Buffer>(data.layout(0), data.count(0), data.mapped);
  in = std::make_unique<Buffer>(data.layout(1), data.count(1), !data.mapped);
}

void Pair::set_up() {
  make_buffers();
  const auto init = acknowledged || synchronous ? &MPI_Ssend_init : &MPI_Send_init;
  if (world_rank == from) {
    init(out->data(), static_cast<int>(out->elements()), out->layout().type, destination, tag,
         comm->handle, &sending);
  }
  if (world_rank == to) {
    MPI_Recv_init(in->data(), static_cast<int>(in->elements()), in->layout().type, source, tag,
                  comm->handle, &receiving);
  }
}

void Pair::start(std::size_t round) {
  if (world_rank == from) {
    out->fill(0, out->elements(), key(round));
    MPI_Startall(1, &sending);
  } else {
    MPI_Start(&receiving);
  }
}

void Pair::wait(std::size_t round, std::size_t how) {
  if (world_rank == from) {
    complete({{&sending, [](const MPI_Status&) {}}}, how);
    return;
  }
  complete({{&receiving, [](const MPI_Status&) {}}}, how);
  expect(in->take(0, in->elements(), key(round)), "the bytes of a message that is started again");
  expect(in->untouched(), "nothing else was written by a message that is started again");
}

void Pair::free() { MPI_Request_free(world_rank == from ? &sending : &receiving); }

std::shared_ptr<Pair> draw_pair(Schedule& schedule, const World& world) {
  Random& random = schedule.random;
  const Comm& comm = draw_comm(random, world);
  const Group& group = draw_group(random, comm);
  const auto size = static_cast<std::size_t>(group.size());
  if (size < 2) return nullptr;
  const std::size_t source = random.below(size);
  const std::size_t destination = (source + 1 + random.below(size - 1)) % size;
  auto made = std::make_shared<Pair>();
  made->comm = &comm;
  made->source = static_cast<int>(source);
  made->destination = static_cast<int>(destination);
  made->from = group.world_ranks[source];
  made->to = group.world_ranks[destination];
  made->tag = schedule.new_tag();
  made->acknowledged = random.chance(30);
  made->data = draw_data(random, most_bytes);
  return made;
}

// The rounds of the two ranks are counted apart, because one may be far ahead.
template <class Run>
double add_on_both(Schedule& schedule, const Pair& pair, double from, const std::string& text,
                   Run run) {
  const double first = schedule.after(from), second = schedule.after(from);
  schedule.add(first, pair.from, text + " (sender) " + pair.text(), run);
  schedule.add(second, pair.to, text + " (receiver) " + pair.text(), run);
  return first > second ? first : second;
}

}  // namespace

void add_persistent(Schedule& schedule, const World& world) {
  const auto pair = draw_pair(schedule, world);
  if (pair == nullptr) return;
  double time = add_on_both(schedule, *pair, schedule.begin(), "Send_init, Recv_init",
                            [pair] { pair->set_up(); });
  for (std::size_t round = 0, rounds = schedule.random.between(1, 3); round < rounds; ++round) {
    const std::size_t how = draw_way_of_persistent(schedule.random);
    time = add_on_both(schedule, *pair, time, "Start", [=] { pair->start(round); });
    time = add_on_both(schedule, *pair, time, way_name(how), [=] { pair->wait(round, how); });
  }
  add_on_both(schedule, *pair, time, "Request_free", [pair] { pair->free(); });
}

#if MPI_VERSION >= 4

void Pair::set_up_partitioned() {
  make_buffers();
  const int parts = static_cast<int>(partitions);
  const auto count = static_cast<MPI_Count>(data.bytes / partitions);
  if (world_rank == from) {
    MPI_Psend_init(out->data(), parts, count, MPI_BYTE, destination, tag, comm->handle,
                   MPI_INFO_NULL, &sending);
  } else {
    MPI_Precv_init(in->data(), parts, count, MPI_BYTE, source, tag, comm->handle, MPI_INFO_NULL,
                   &receiving);
  }
}

// Readies every step-th partition from the first one.
void Pair::ready(std::size_t first, std::size_t step) {
  for (std::size_t i = first; i < partitions; i += step) {
    MPI_Pready(static_cast<int>(i), sending);
  }
}

void Pair::look() const {
  int flag = 0;
  for (std::size_t i = 0; i < partitions; ++i) {
    MPI_Parrived(receiving, static_cast<int>(i), &flag);
  }
}

void add_partitioned(Schedule& schedule, const World& world) {
  const auto pair = draw_pair(schedule, world);
  if (pair == nullptr) return;
  Random& random = schedule.random;
  pair->partitions = random.between(1, 8);
  pair->data.derived = false;
  pair->data.bytes = (pair->data.bytes / pair->partitions + 1) * pair->partitions;
  double time = add_on_both(schedule, *pair, schedule.begin(), "Psend_init, Precv_init",
                            [pair] { pair->set_up_partitioned(); });
  for (std::size_t round = 0, rounds = random.between(1, 3); round < rounds; ++round) {
    const std::size_t how = draw_way_of_persistent(random);
    const double started = add_on_both(schedule, *pair, time, "Start", [=] { pair->start(round); });
    time = started;
    for (std::size_t half = 0; half < 2; ++half) {
      const double now = schedule.after(started);
      schedule.add(now, pair->from, "Pready " + pair->text(), [=] { pair->ready(half, 2); });
      time = time > now ? time : now;
    }
    const double looked = schedule.after(started);
    schedule.add(looked, pair->to, "Parrived " + pair->text(), [pair] { pair->look(); });
    time = add_on_both(schedule, *pair, time > looked ? time : looked, way_name(how),
                       [=] { pair->wait(round, how); });
  }
  add_on_both(schedule, *pair, time, "Request_free", [pair] { pair->free(); });
}

#else

void add_partitioned(Schedule&, const World&) {}

#endif

}  // namespace mixed
