#include "model/rounds/scenarios.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "model/tokens.hpp"
#include "round_claims.hpp"

namespace ropewalk::model::rounds {
namespace {

using preload::RoundClaims;
using preload::RoundFlags;

// How many rounds rank 0 has completed, as it tells rank 1 by a message.
struct Told {
  node::Flag<std::uint64_t> completed;
};

// Everything that the ranks share: as in an allreduce, each task adds up one element of all ranks.
struct Shared {
  std::array<RoundFlags*, max_ranks> flags{};
  std::array<Element*, max_ranks> sent{};
  std::array<Element*, max_ranks> received{};
  std::array<std::optional<RoundClaims>, max_ranks> claims;
  std::array<std::uint64_t, max_ranks> steps{};
  Told* told = nullptr;
  const Scenario* scenario = nullptr;
};
Shared shared;

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
int tasks_before(int rank) {
  int tasks = 0;
  for (int other = 0; other < rank; ++other) tasks += shared.scenario->tasks[index(other)];
  return tasks;
}
std::size_t elements() { return static_cast<std::size_t>(tasks_before(shared.scenario->ranks)); }

FlagFacts describe(const FlagPlace& flag) {
  if (flag.block_bytes == sizeof(Told)) return {"completed", true};
  if (flag.offset == offsetof(RoundFlags, begun)) return {"begun", true};
  return {flag.offset == offsetof(RoundFlags, claimed) ? "claimed" : "done", false};
}

// A rank remembers its step and what it has seen of the flags; all else follows from these.
std::uint64_t remembered() { return mix(shared.steps[index(model::rank())], hash_of_seen()); }
void note_step() {
  ++shared.steps[index(model::rank())];
  checkpoint_at(remembered());
}

void do_task(int rank, std::uint64_t number) {
  const std::size_t at = static_cast<std::size_t>(tasks_before(rank)) + number;
  Element sum = 0;
  for (int from = 0; from < shared.scenario->ranks; ++from) {
    read(&shared.sent[index(from)][at], sizeof(Element));
    sum += shared.sent[index(from)][at];
  }
  for (int to = 0; to < shared.scenario->ranks; ++to) {
    write(&shared.received[index(to)][at], sizeof(Element));
    shared.received[index(to)][at] = sum;
  }
}

// The program fills what it sends, and may use what it receives until the round begins.
void fill(int rank, int round) {
  const std::size_t bytes = elements() * sizeof(Element);
  write(shared.received[index(rank)], bytes);
  write(shared.sent[index(rank)], bytes);
  for (std::size_t i = 0; i < elements(); ++i) {
    shared.sent[index(rank)][i] = token(rank, round, i);
  }
}
void expect_received(int rank, int round) {
  read(shared.received[index(rank)], elements() * sizeof(Element));
  for (std::size_t i = 0; i < elements(); ++i) {
    expect(shared.received[index(rank)][i], sum_of_tokens(shared.scenario->ranks, round, i));
  }
}

void run(int rank) {
  RoundClaims& claims = *shared.claims[index(rank)];
  const Scenario& scenario = *shared.scenario;
  for (int round = 1; round <= scenario.rounds; ++round) {
    const auto number = static_cast<std::uint64_t>(round);
    fill(rank, round);
    claims.begin();
    note_step();
    while (scenario.late && rank == 1 &&
           shared.told->completed.load(std::memory_order_acquire) < number) {
      pause(remembered());
    }
    while (!claims.advance(&do_task)) pause(remembered());
    expect_received(rank, round);
    if (scenario.late && rank == 0) {
      shared.told->completed.store(number, std::memory_order_release);
    }
    note_step();
  }
}

// ---- the search

Element* make_buffer() {
  return reinterpret_cast<Element*>(allocate(elements() * sizeof(Element), alignof(Element)));
}

void set_up(const Scenario& scenario) {
  shared = {};
  shared.scenario = &scenario;
  std::vector<RoundClaims::Part> parts;
  for (int rank = 0; rank < scenario.ranks; ++rank) {
    set_rank(rank);
    const std::size_t at = index(rank);
    shared.flags[at] = new (allocate(sizeof(RoundFlags), alignof(RoundFlags))) RoundFlags;
    shared.sent[at] = make_buffer();
    shared.received[at] = scenario.in_place ? shared.sent[at] : make_buffer();
    parts.push_back({shared.flags[at], static_cast<std::uint64_t>(scenario.tasks[at])});
  }
  set_rank(0);
  shared.told = new (allocate(sizeof(Told), alignof(Told))) Told;
  for (int rank = 0; rank < scenario.ranks; ++rank) {
    shared.claims[index(rank)].emplace(rank, parts);
  }
}

constexpr Scenario all[] = {
    {.name = "one_task_each"},
    {.name = "two_tasks_and_one", .tasks = {2, 1}},
    {.name = "in_place", .in_place = true},
    {.name = "late", .late = true},
    {.name = "work_of_one", .tasks = {2, 0}, .rounds = 3},
    {.name = "three_ranks", .ranks = 3, .tasks = {1, 0, 0}, .rounds = 1},
};

}  // namespace

std::span<const Scenario> scenarios() { return all; }

const Scenario* find_scenario(const char* name) {
  for (const Scenario& one : all) {
    if (std::strcmp(one.name, name) == 0) return &one;
  }
  return nullptr;
}

Result explore(const Scenario& scenario, const Options& options) {
  Program program;
  program.describe = describe;
  program.pauses = true;
  program.set_up = [&] { set_up(scenario); };
  program.run = run;
  program.tear_down = [] {};
  return model::explore(scenario.ranks, program, options);
}

}  // namespace ropewalk::model::rounds
