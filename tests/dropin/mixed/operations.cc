// This file plans collectives of all forms and modes: one at a time, several persistent ones that
// are started together, and exchanges between neighbours on communicators made for them.
#include "operations.hpp"

#include <algorithm>

namespace mixed {

namespace {

// Operations on one communicator, of which the persistent ones are started together.
struct Set {
  const Comm* comm;
  Mode mode;
  std::vector<std::unique_ptr<Operation>> operations;

  std::string text() const {
    constexpr const char* modes[] = {"", " nonblocking", " persistent"};
    std::string made = modes[static_cast<int>(mode)];
    for (const auto& one : operations) made += " " + one->text();
    return made + " on " + comm->name;
  }
  void set_up();
  void fill(std::size_t round);
  void start(std::size_t round, bool together);
  void finish(std::size_t round, std::size_t how);
  void free();
};

void Set::set_up() {
  for (const auto& one : operations) {
    one->prepare(*comm);
    if (mode == Mode::persistent) {
      one->call(mode, comm->handle);
      continue;
    }
    one->fill(0);
    one->call(mode, comm->handle);
    if (mode == Mode::blocking) one->check(0);
  }
}

void Set::start(std::size_t round, bool together) {
  std::vector<MPI_Request> requests;
  for (const auto& one : operations) {
    one->fill(round);
    requests.push_back(one->request);
  }
  if (together) {
    MPI_Startall(static_cast<int>(requests.size()), requests.data());
  } else {
    for (MPI_Request& request : requests) MPI_Start(&request);
  }
  for (std::size_t i = 0; i < requests.size(); ++i) operations[i]->request = requests[i];
}

void Set::finish(std::size_t round, std::size_t how) {
  std::vector<Pending> pending;
  for (const auto& one : operations) {
    pending.push_back({&one->request, [&one, round](const MPI_Status&) { one->check(round); }});
  }
  complete(pending, how);
}

void Set::free() {
  for (const auto& one : operations) MPI_Request_free(&one->request);
}

Mode draw_mode(Random& random) {
  const std::size_t drawn = random.below(10);
  if (drawn < 2) return Mode::blocking;
  return drawn < 6 || !MIXED_PERSISTENT ? Mode::nonblocking : Mode::persistent;
}

// Returns the time when the last rank is done.
double plan(Schedule& schedule, const std::shared_ptr<Set>& set, double time) {
  Random& random = schedule.random;
  const Ranks ranks = set->comm->ranks();
  const std::string text = set->text();
  schedule.add(time, ranks, (set->mode == Mode::persistent ? "Set up" : "Call") + text,
               [set] { set->set_up(); });
  if (set->mode == Mode::blocking) return time;
  if (set->mode == Mode::nonblocking) {
    const std::size_t how = random.below(ways_to_complete);
    return schedule.add_on_each(time, ranks, way_name(how) + (" of" + text),
                                [set, how] { set->finish(0, how); });
  }
  for (std::size_t round = 0, rounds = random.between(1, 4); round < rounds; ++round) {
    const std::size_t how = draw_way_of_persistent(random);
    const bool together = random.chance(50);
    time = schedule.after(time);
    schedule.add(time, ranks, "Start" + text, [=] { set->start(round, together); });
    time = schedule.add_on_each(time, ranks, way_name(how) + (" of" + text),
                                [=] { set->finish(round, how); });
  }
  return schedule.add_on_each(time, ranks, "Request_free of" + text, [set] { set->free(); });
}

// A communicator with a topology, of which all ranks know all neighbours.
struct Topology {
  const Comm* parent;
  Comm made;
  bool grid;
  std::uint64_t key;
  std::shared_ptr<Neighbours> around = std::make_shared<Neighbours>();

  bool is_edge(int from, int to) const {
    return mix(key + static_cast<std::uint64_t>(from * 64 + to)) % 2 == 0;
  }
  void make();
  void make_grid(int size);
  void make_graph(int size, int me);
};

// Two dimensions where they fit. A period of one or two would make a rank a neighbour twice, which
// MPIs do not all pair alike (Open MPI 5.0.11 in its persistent calls).
void Topology::make_grid(int size) {
  const int dimensions = size >= 4 && size % 2 == 0 ? 2 : 1;
  int sizes[] = {size, 1}, periods[] = {0, 0};
  if (dimensions == 2) sizes[0] = 2, sizes[1] = size / 2;
  for (int i = 0; i < 2; ++i) periods[i] = sizes[i] >= 3 && (key >> i & 1) != 0;
  MPI_Cart_create(parent->handle, dimensions, sizes, periods, 0, &made.handle);
  for (int i = 0; i < dimensions; ++i) {
    int before = 0, behind = 0;
    MPI_Cart_shift(made.handle, i, 1, &before, &behind);
    for (const int at : {before, behind}) {
      around->sources.push_back(at == MPI_PROC_NULL ? -1 : at);
    }
  }
  around->destinations = around->sources;
}

// The neighbours stand in an order of this rank's own.
void Topology::make_graph(int size, int me) {
  for (int i = 0; i < size; ++i) {
    const int at = (i + me + static_cast<int>(key % 7)) % size;
    if (is_edge(at, me)) around->sources.push_back(at);
    if (is_edge(me, i)) around->destinations.push_back(i);
  }
  if (key % 3 == 0) std::reverse(around->destinations.begin(), around->destinations.end());
  std::vector<int>&in = around->sources, &out = around->destinations;
  MPI_Dist_graph_create_adjacent(parent->handle, static_cast<int>(in.size()), in.data(),
                                 MPI_UNWEIGHTED, static_cast<int>(out.size()), out.data(),
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made.handle);
}

void Topology::make() {
  const int size = parent->own->size();
  if (grid) {
    make_grid(size);
  } else {
    make_graph(size, parent->index);
  }
  find_own(made);
}

}  // namespace

void add_operations(Schedule& schedule, const World& world) {
  Random& random = schedule.random;
  const Comm& comm = draw_comm(random, world);
  const auto set = std::make_shared<Set>();
  set->comm = &comm;
  set->mode = draw_mode(random);
  for (std::size_t n = set->mode == Mode::blocking ? 1 : random.between(1, 3); n > 0; --n) {
    set->operations.push_back(random.chance(60) ? draw_movement(random) : draw_combination(random));
  }
  plan(schedule, set, schedule.begin());
}

void add_neighbours(Schedule& schedule, const World& world) {
  Random& random = schedule.random;
  const Comm& parent = draw_comm(random, world);
  const auto topology = std::make_shared<Topology>();
  topology->parent = &parent;
  topology->made.groups = parent.groups;
  topology->grid = random.chance(40);
  topology->made.name = (topology->grid ? "a grid of " : "a graph of ") + parent.name;
  topology->key = random.next();
  double time = schedule.begin();
  schedule.add(time, parent.ranks(), "make " + topology->made.name,
               [topology] { topology->make(); });
  double last = time;
  for (std::size_t n = random.between(2, 4); n > 0; --n) {
    const auto set = std::make_shared<Set>();
    set->comm = &topology->made;
    set->mode = draw_mode(random);
    for (std::size_t k = set->mode == Mode::blocking ? 1 : random.between(1, 2); k > 0; --k) {
      set->operations.push_back(draw_neighbour_movement(random, topology->around));
    }
    time = schedule.after(time);
    last = std::max(last, plan(schedule, set, time));
  }
  schedule.add(schedule.after(last), parent.ranks(), "free " + topology->made.name,
               [topology] { MPI_Comm_free(&topology->made.handle); });
}

}  // namespace mixed
