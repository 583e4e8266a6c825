#include "model/envelope/scenarios.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "envelope.hpp"
#include "model/tokens.hpp"

namespace ropewalk::model::envelope {
namespace {

using namespace ropewalk::preload::messages;

constexpr std::size_t words = 3;
constexpr std::size_t bytes = words * sizeof(Element);
constexpr std::size_t piece = 2 * sizeof(Element);  // the last piece is shorter
constexpr auto stores = kernels::Stores::temporal;

// What the sender has told by MPI, and whether it has died.
struct Told {
  node::Flag<std::uint64_t> mailed;  // number of descriptors
  node::Flag<std::uint64_t> dead;
};

// Everything that the two ranks share. The sender is rank 0.
struct Shared {
  EnvelopeSlot* slot = nullptr;
  Told* told = nullptr;
  Element* data = nullptr;               // the buffer of the sender's program
  std::array<Element*, 2> kept{};        // the copy of each message
  Element* target = nullptr;             // the buffer of the receiver's program
  std::array<std::uint64_t, 2> steps{};  // of each rank
  const Scenario* scenario = nullptr;
};
Shared shared;

FlagFacts describe(const FlagPlace& flag) {
  if (flag.block_bytes == sizeof(Told)) {
    return {flag.offset == offsetof(Told, dead) ? "dead" : "mailed", true};
  }
  if (flag.offset == offsetof(EnvelopeSlot, state)) return {"state", false};
  if (flag.offset == offsetof(EnvelopeSlot, destination)) return {"destination", true};
  return {flag.offset == offsetof(EnvelopeSlot, begun) ? "begun" : "copied", false};
}

// A rank remembers its step and what it has seen of the flags; all else follows from these.
std::uint64_t remembered() {
  return mix(shared.steps[static_cast<std::size_t>(model::rank())], hash_of_seen());
}
void note_step() {
  ++shared.steps[static_cast<std::size_t>(model::rank())];
  checkpoint_at(remembered());
}
void stand_still() { pause(remembered()); }

std::uint64_t offset_of(const void* place, int rank) {
  return static_cast<std::uint64_t>(static_cast<const std::byte*>(place) - arena(rank));
}
std::byte* as_bytes(Element* data) { return reinterpret_cast<std::byte*>(data); }

void fill(int message) {
  write(shared.data, bytes);
  for (std::size_t i = 0; i < words; ++i) shared.data[i] = token(0, message, i);
}
void expect_received(int message) {
  read(shared.target, bytes);
  for (std::size_t i = 0; i < words; ++i) expect(shared.target[i], token(0, message, i));
}

// ---- the sender

// Takes the data away, as keep() of the outbox does. Returns false where the receiver has it.
bool keep(Element* copy) {
  if (!begin_move(*shared.slot)) return false;
  if (shared.scenario->dies) {
    shared.told->dead.store(1, std::memory_order_release);
    return true;
  }
  kernels::copy(copy, shared.data, bytes, stores);
  end_move(*shared.slot, offset_of(copy, 0));
  return true;
}

// Waits until the receiver has the data, and helps it where it can, as is_over() does.
void wait_until_copied(bool kept) {
  for (bool helped = kept;;) {
    const State state = shared.slot->state.load(std::memory_order_acquire);
    if (state == State::copied) return;
    if (state == State::claimed && !helped) {
      helped = true;
      help(*shared.slot, arena(1), as_bytes(shared.data), stores);
      note_step();
    }
    stand_still();
  }
}

void send() {
  for (int message = 1; message <= shared.scenario->messages; ++message) {
    fill(message);
    arm(*shared.slot, 1, static_cast<std::uint64_t>(message), offset_of(shared.data, 0), bytes,
        false);
    shared.told->mailed.store(static_cast<std::uint64_t>(message), std::memory_order_release);
    Element* const copy = shared.kept[static_cast<std::size_t>(message - 1)];
    const bool kept = shared.scenario->keeps && keep(copy);
    if (kept && shared.scenario->dies) return;
    if (kept) write(shared.data, bytes);  // the program goes on with its buffer
    note_step();
    wait_until_copied(kept);
    if (kept) write(copy, bytes);  // its memory is given back
    shared.slot->state.store(State::free, std::memory_order_relaxed);
    note_step();
  }
}

// ---- the receiver

bool is_gone() {
  if (shared.told->dead.load(std::memory_order_acquire) != 0) return true;
  stand_still();
  return false;
}

void copy(const Claim& claimed) {
  EnvelopeSlot& slot = *shared.slot;
  const std::byte* from = arena(0) + claimed.place;
  copy_pieces(slot, as_bytes(shared.target), from, stores);
  while (!all_copied(slot)) stand_still();
}

// Looks whether a message is under way, as a probe does.
void look() {
  const State state = shared.slot->state.load(std::memory_order_acquire);
  if (state == State::free || state == State::claimed || state == State::copied) return;
  if (shared.slot->destination.load(std::memory_order_relaxed) != 1) {
    fail("finds an armed slot for nobody");
  }
}

void receive() {
  for (int message = 1; message <= shared.scenario->messages; ++message) {
    const auto number = static_cast<std::uint64_t>(message);
    if (shared.scenario->looks) look();
    while (shared.told->mailed.load(std::memory_order_acquire) < number) stand_still();
    const std::uint64_t target = shared.scenario->together ? offset_of(shared.target, 1) : nowhere;
    const auto claimed = claim(*shared.slot, target, piece, &is_gone);
    if (!claimed) return fail("finds no message in the slot");
    if (shared.slot->serial != number) return fail("finds another message");
    copy(*claimed);
    expect_received(message);
    shared.slot->state.store(State::copied, std::memory_order_release);
    note_step();
  }
}

// ---- the search

template <class T>
T* make() {
  return new (allocate(sizeof(T), alignof(T))) T;
}
Element* make_buffer() { return reinterpret_cast<Element*>(allocate(bytes, alignof(Element))); }

void set_up(const Scenario& scenario) {
  shared = {};
  shared.scenario = &scenario;
  set_rank(0);
  shared.slot = make<EnvelopeSlot>();
  shared.told = make<Told>();
  shared.data = make_buffer();
  for (Element*& copy : shared.kept) copy = make_buffer();
  set_rank(1);
  shared.target = make_buffer();
}

constexpr Scenario all[] = {
    {.name = "receiver_copies"},
    {.name = "both_copy", .together = true},
    {.name = "sender_keeps", .keeps = true},
    {.name = "sender_keeps_or_helps", .together = true, .keeps = true},
    {.name = "receiver_looks", .looks = true, .messages = 1},
    {.name = "sender_dies", .keeps = true, .dies = true, .messages = 1},
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
  program.run = [](int rank) { rank == 0 ? send() : receive(); };
  program.tear_down = [] {};
  return model::explore(2, program, options);
}

}  // namespace ropewalk::model::envelope
