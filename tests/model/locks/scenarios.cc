#include "model/locks/scenarios.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "model/tokens.hpp"
#include "ticket_lock.hpp"

namespace ropewalk::model::locks {
namespace {

using preload::onesided::TicketLock;

// What the ranks share: a writer alone changes the two elements, so that they are always the same.
struct Shared {
  TicketLock* lock = nullptr;
  Element* elements = nullptr;
  std::array<std::uint64_t, max_ranks> steps{};
  const Scenario* scenario = nullptr;
};
Shared shared;

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

// Tickets and exits are counted by all; who is in alone stores how far readers may come.
FlagFacts describe(const FlagPlace& flag) {
  constexpr std::array<const char*, 3> names{"tickets", "entered", "left"};
  return {names[flag.offset / sizeof(std::uint64_t)], false};
}

std::uint64_t remembered() { return mix(shared.steps[index(model::rank())], hash_of_seen()); }
void note_step() {
  ++shared.steps[index(model::rank())];
  checkpoint_at(remembered());
}
template <class Ready>
void wait_until(const Ready& ready) {
  while (!ready()) pause(remembered());
}
const auto waiting = [](const auto& ready) { wait_until(ready); };

void read_elements() {
  read(shared.elements, 2 * sizeof(Element));
  expect(shared.elements[0], shared.elements[1]);
}
void change_elements() {
  read_elements();
  write(shared.elements, 2 * sizeof(Element));
  ++shared.elements[0];
  ++shared.elements[1];
}

void run(int rank) {
  TicketLock& lock = *shared.lock;
  for (const char how : shared.scenario->locks[index(rank)]) {
    if (how == 'w') {
      lock.lock(waiting);
      change_elements();
      lock.unlock();
    } else {
      lock.lock_shared(waiting);
      read_elements();
      lock.unlock_shared();
    }
    note_step();
  }
}

void set_up(const Scenario& scenario) {
  shared = {};
  shared.scenario = &scenario;
  set_rank(0);
  shared.lock = new (allocate(sizeof(TicketLock), alignof(TicketLock))) TicketLock;
  shared.elements = reinterpret_cast<Element*>(allocate(2 * sizeof(Element), alignof(Element)));
  write(shared.elements, 2 * sizeof(Element));
  shared.elements[0] = shared.elements[1] = 0;
}

constexpr Scenario all[] = {
    {.name = "writers", .locks = {"ww", "ww"}},
    {.name = "writer_and_reader", .locks = {"ww", "rr"}},
    {.name = "reader_becomes_writer", .locks = {"ww", "rw"}},
    {.name = "two_readers", .ranks = 3, .locks = {"w", "r", "r"}},
    {.name = "reader_between_writers", .ranks = 3, .locks = {"w", "r", "w"}},
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

}  // namespace ropewalk::model::locks
