#include "world.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace mixed {

int world_rank = 0, world_size = 1;
bool synchronous = false;

namespace {

std::array<char, 300> here{};
unsigned seconds_to_linger = 0;
bool told = false;
int found = 0;

// Returns `here` without what it says of a hang.
const char* where() {
  const char* rank = std::strstr(here.data(), "rank ");
  return rank == nullptr ? "before the first step\n" : rank;
}

void say_and_leave(int) {
  if (told) _exit(1);
  told = true;
  (void)!write(STDERR_FILENO, here.data(), std::strlen(here.data()));  // in one piece
  if (seconds_to_linger == 0) _exit(1);
  alarm(seconds_to_linger);
}

void tell_error(MPI_Comm* comm, int* error, ...) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(*error, text.data(), &length);
  std::fprintf(stderr, "mixed: an error of MPI: %s; %s", text.data(), where());
  MPI_Abort(*comm, 1);
}

Group all_ranks() {
  Group group;
  for (int rank = 0; rank < world_size; ++rank) group.world_ranks.push_back(rank);
  return group;
}

Comm duplicate(const std::string& name) {
  Comm made{name, {all_ranks()}, MPI_COMM_NULL, nullptr, -1};
  MPI_Comm_dup(MPI_COMM_WORLD, &made.handle);
  return made;
}

// colour[r] is the group of rank r, or none below 0; keys put its ranks in order.
Comm split(const std::string& name, const std::vector<int>& colour, bool reversed) {
  Comm made{name, {}, MPI_COMM_NULL, nullptr, -1};
  const int groups = *std::max_element(colour.begin(), colour.end()) + 1;
  made.groups.resize(static_cast<std::size_t>(groups));
  for (int rank = 0; rank < world_size; ++rank) {
    const int of = colour[static_cast<std::size_t>(rank)];
    if (of >= 0) made.groups[static_cast<std::size_t>(of)].world_ranks.push_back(rank);
  }
  if (reversed) {
    for (Group& group : made.groups)
      std::reverse(group.world_ranks.begin(), group.world_ranks.end());
  }
  const int own = colour[static_cast<std::size_t>(world_rank)];
  MPI_Comm_split(MPI_COMM_WORLD, own < 0 ? MPI_UNDEFINED : own, reversed ? -world_rank : world_rank,
                 &made.handle);
  return made;
}

}  // namespace

Ranks Group::ranks() const {
  Ranks set = 0;
  for (const int rank : world_ranks) set |= Ranks{1} << rank;
  return set;
}

int Group::index_of(int rank) const {
  const auto at = std::find(world_ranks.begin(), world_ranks.end(), rank);
  return at == world_ranks.end() ? -1 : static_cast<int>(at - world_ranks.begin());
}

Ranks Comm::ranks() const {
  Ranks set = 0;
  for (const Group& group : groups) set |= group.ranks();
  return set;
}

void find_own(Comm& comm) {
  comm.own = nullptr;
  for (const Group& group : comm.groups) {
    if (group.index_of(world_rank) < 0) continue;
    comm.own = &group;
    comm.index = group.index_of(world_rank);
  }
}

void tell_errors() {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(&tell_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);  // its duplicates and parts inherit it
  MPI_Errhandler_free(&handler);
}

std::vector<Comm> make_comms() {
  std::vector<Comm> made;
  made.push_back({"world", {all_ranks()}, MPI_COMM_WORLD, nullptr, -1});
  made.push_back(duplicate("dup"));
  std::vector<int> colour(static_cast<std::size_t>(world_size), 0);
  made.push_back(split("reversed", colour, true));
  if (world_size >= 3) {
    for (std::size_t i = 0; i < colour.size(); ++i) colour[i] = static_cast<int>(i % 2);
    made.push_back(split("parity", colour, false));
    for (std::size_t i = 0; i < colour.size(); ++i) colour[i] = i * 2 < colour.size() ? 0 : 1;
    made.push_back(split("halves", colour, true));
    std::fill(colour.begin(), colour.end(), 0);
    colour.back() = -1;
    made.push_back(split("but last", colour, false));
  }
  return made;
}

std::vector<Comm> make_exclusive_comms(int number) {
  std::vector<Comm> made;
  for (int i = 0; i < number; ++i) made.push_back(duplicate("exclusive " + std::to_string(i)));
  return made;
}

void free_comms(std::vector<Comm>& comms) {
  for (Comm& comm : comms) {
    if (comm.handle != MPI_COMM_WORLD && comm.handle != MPI_COMM_NULL) MPI_Comm_free(&comm.handle);
  }
  comms.clear();
}

void enter(std::uint64_t seed, std::size_t step, const std::string& text) {
  std::snprintf(here.data(), here.size(),
                "mixed: no end: rank %d (process %d): seed %llu, step %zu: %s\n", world_rank,
                static_cast<int>(getpid()), static_cast<unsigned long long>(seed), step,
                text.c_str());
}

void expect(bool holds, const char* what) {
  if (holds || ++found > 20) return;
  std::fprintf(stderr, "mixed: not so: %s; %s", what, where());
}

int failures() { return found; }

void watch(unsigned seconds, unsigned linger) {
  seconds_to_linger = linger;
  std::signal(SIGALRM, &say_and_leave);
  alarm(seconds);
}

}  // namespace mixed
