#include "model/messages/scenarios.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "messages/engine.hpp"
#include "model/messages/rank.hpp"
#include "model/tokens.hpp"

namespace ropewalk::model::messages {
namespace {

using ropewalk::messages::MessageOperation;

// These are numbers of elements: of a message that goes in its cell, of one that just needs a slot,
// of the longest that goes through a slot, and of one that is offered and has three pieces.
constexpr std::size_t in_cell = 1;
constexpr std::size_t in_slot = 14;
constexpr std::size_t in_long_slot = 16;
constexpr std::size_t in_pieces = 24;

// This is a message in private memory.
struct Message {
  std::array<Element, in_pieces> data{};

  void fill(int rank, int call) {
    for (std::size_t index = 0; index < data.size(); ++index) {
      data[index] = token(rank, call, index);
    }
  }
  void expect_filled(std::size_t count, int rank, int call) const {
    for (std::size_t index = 0; index < count; ++index) {
      expect(data[index], token(rank, call, index));
    }
  }
};

// These calls return when no message of their rank is under way. The rank then remembers how many
// cells are free, and which messages came before their receives. The number of a message is its
// tag.
void send(Rank& self, int number, std::size_t count, int to) {
  Message message;
  message.fill(self.rank, number);
  self.engine.send(message.data.data(), count * sizeof(Element), to, number);
  self.note_step();
}
void receive(Rank& self, int number, std::size_t count, int from) {
  Message message;
  const MessageStatus status =
      self.engine.receive(message.data.data(), sizeof message.data, from, number);
  if (status.bytes != count * sizeof(Element)) fail("gets a message of another length");
  message.expect_filled(count, from, number);
  self.note_step();
}

void finish(Rank& self, MessageOperation& operation) {
  self.engine.wait(operation);
  self.engine.finish(operation);
  self.note_step();
}

// Does the same with messages that are offered.
void offer(Rank& self, const void* data, int number, int to) {
  MessageOperation& operation =
      *self.engine.start_send(data, in_pieces * sizeof(Element), to, number);
  self.under_way[0] = &operation;
  finish(self, operation);
}
void take(Rank& self, void* data, int number, int from) {
  MessageOperation& operation =
      *self.engine.start_receive(data, in_pieces * sizeof(Element), from, number);
  self.under_way[0] = &operation;
  finish(self, operation);
}
void send_offered(Rank& self, int number, int to) {
  Message message;
  message.fill(self.rank, number);
  offer(self, message.data.data(), number, to);
}
void receive_offered(Rank& self, int number, int from) {
  Message message;
  take(self, message.data.data(), number, from);
  message.expect_filled(in_pieces, from, number);
}

// Does the same from and to memory of the arena, which is used again as soon as the call returns.
void send_shared(Rank& self, Shared& buffer, int number, int to) {
  buffer.fill(self.rank, number);
  offer(self, buffer.data(), number, to);
}
void receive_shared(Rank& self, Shared& buffer, int number, int from) {
  take(self, buffer.data(), number, from);
  buffer.expect_filled(0, in_pieces, from, number);
  buffer.fill(self.rank, -number);
}

MessageOperation& start_send(Rank& self, const Shared& buffer, int number, int to) {
  return *self.engine.start_send(buffer.data(), in_pieces * sizeof(Element), to, number);
}
MessageOperation& start_receive(Rank& self, const Shared& buffer, int number, int from) {
  return *self.engine.start_receive(buffer.data(), in_pieces * sizeof(Element), from, number);
}
// ---- the ring, which goes round

template <std::size_t... counts>
void one_way(Rank& self) {
  int number = 0;
  const auto one = [&](std::size_t count) {
    ++number;
    if (count == in_pieces) {
      self.rank == 0 ? send_offered(self, number, 1) : receive_offered(self, number, 0);
    } else {
      self.rank == 0 ? send(self, number, count, 1) : receive(self, number, count, 0);
    }
  };
  (one(counts), ...);
}

void there_and_back(Rank& self) {
  const int other = 1 - self.rank;
  for (int number = 1; number <= 3; ++number) {
    const std::size_t count = number == 2 ? in_slot : in_cell;
    if (self.rank == 0) send(self, number, count, other);
    receive(self, number, count, other);
    if (self.rank == 1) send(self, number, count, other);
  }
}

// Both make their rings at the same time.
void crossing(Rank& self) {
  for (int number = 1; number <= 3; ++number) {
    send(self, number, in_cell, 1 - self.rank);
    receive(self, number, in_cell, 1 - self.rank);
  }
}

// The last is waited for first: the others are kept.
void unexpected(Rank& self) {
  if (self.rank == 0) {
    for (int number = 1; number <= 4; ++number) {
      send(self, number, number % 2 == 0 ? in_slot : in_cell, 1);
    }
  } else {
    for (int number = 4; number >= 1; --number) {
      receive(self, number, number % 2 == 0 ? in_slot : in_cell, 0);
    }
  }
}

// Rank 1 waits until its offer is taken; rank 0 first has more messages for it than there are
// cells.
void full_ring(Rank& self) {
  Shared buffer(in_pieces);
  if (self.rank == 0) {
    for (int number = 1; number <= 5; ++number) send(self, number, in_cell, 1);
    receive_shared(self, buffer, 6, 1);
  } else {
    send_shared(self, buffer, 6, 0);
    for (int number = 1; number <= 5; ++number) receive(self, number, in_cell, 0);
  }
}

void probed(Rank& self) {
  if (self.rank == 0) {
    send(self, 1, in_cell, 1);
    send(self, 2, in_slot, 1);
    return;
  }
  const auto found = self.engine.probe(0, any_tag);
  if (found && (found->tag != 1 || found->bytes != sizeof(Element))) fail("probes another message");
  receive(self, 2, in_slot, 0);
  receive(self, 1, in_cell, 0);
}

void any_sender(Rank& self) {
  if (self.rank != 0) return send(self, self.rank, in_cell, 0);
  for (int count = 1; count < self.size; ++count) {
    Message message;
    const MessageStatus status =
        self.engine.receive(message.data.data(), sizeof message.data, any_source, any_tag);
    if (status.tag != status.source) fail("gets a message under another rank's name");
    message.expect_filled(in_cell, status.source, status.tag);
    self.note_step(static_cast<std::uint64_t>(status.source));
  }
}

// ---- offers

template <int messages>
void offers(Rank& self) {
  Shared buffer(in_pieces);
  for (int number = 1; number <= messages; ++number) {
    if (self.rank == 0) send_shared(self, buffer, number, 1);
    if (self.rank == 1) receive_shared(self, buffer, number, 0);
  }
}

// The sender's buffer is private: it alone reaches the other's.
void offers_of_private_memory(Rank& self) {
  Shared buffer(in_pieces);
  for (int number = 1; number <= 2; ++number) {
    if (self.rank == 0) send_offered(self, number, 1);
    if (self.rank == 1) receive_shared(self, buffer, number, 0);
  }
}

// Two pieces are under way at most.
void pipelines(Rank& self) {
  for (int number = 1; number <= 2; ++number) {
    if (self.rank == 0) send_offered(self, number, 1);
    if (self.rank == 1) receive_offered(self, number, 0);
  }
}

// One Transfer goes from way to way.
void transfer_used_again(Rank& self) {
  Shared buffer(in_pieces);
  if (self.rank == 0) {
    send_shared(self, buffer, 1, 1);
    send_offered(self, 2, 1);
  } else {
    receive_shared(self, buffer, 1, 0);
    receive_offered(self, 2, 0);
  }
}

// Two Transfers at a time, answered in the other order.
void two_offers(Rank& self) {
  Shared first(in_pieces);
  Shared second(in_pieces);
  if (self.rank == 0) {
    first.fill(0, 1);
    second.fill(0, 2);
    MessageOperation& one = start_send(self, first, 1, 1);
    MessageOperation& two = start_send(self, second, 2, 1);
    self.under_way = {&one, &two};
    self.engine.wait(one);
    first.fill(0, 9);
    self.engine.wait(two);
    second.fill(0, 9);
  } else {
    receive_shared(self, second, 2, 0);
    receive_shared(self, first, 1, 0);
  }
}

// Each waits for its own message while the other's is under way.
void offer_against_cell(Rank& self) {
  Shared buffer(in_pieces);
  const int other = 1 - self.rank;
  if (self.rank == 1) {
    MessageOperation& coming = start_receive(self, buffer, 1, other);
    self.under_way[0] = &coming;
    Message message;
    message.fill(self.rank, 2);
    self.engine.send(message.data.data(), in_cell * sizeof(Element), other, 2);
    self.engine.wait(coming);
    buffer.expect_filled(0, in_pieces, other, 1);
    return;
  }
  buffer.fill(self.rank, 1);
  MessageOperation& going = start_send(self, buffer, 1, other);
  self.under_way[0] = &going;
  Message message;
  self.engine.receive(message.data.data(), sizeof message.data, other, 2);
  message.expect_filled(in_cell, other, 2);
  self.engine.wait(going);
  buffer.fill(self.rank, 9);
}

// The message is dropped, and nothing is copied.
void offer_too_long(Rank& self) {
  Shared buffer(in_pieces);
  if (self.rank == 0) {
    send_shared(self, buffer, 1, 1);
    send_shared(self, buffer, 2, 1);
    return;
  }
  bool thrown = false;
  try {
    MessageOperation& operation = *self.engine.start_receive(buffer.data(), sizeof(Element), 0, 1);
    self.under_way[0] = &operation;
    self.engine.wait(operation);
    self.engine.finish(operation);
  } catch (const Error& error) {
    thrown = error.code() == ErrorCode::argument;
  }
  if (!thrown) fail("does not notice that a message is too long");
  self.note_step();
  receive_shared(self, buffer, 2, 0);
}

// ---- withdrawals

// Takes an offer back unless it was answered, and uses the buffer again at once.
void withdraw_one(Rank& self, Shared& buffer, int number) {
  buffer.fill(self.rank, number);
  MessageOperation& operation = start_send(self, buffer, number, 1);
  self.under_way[0] = &operation;
  self.withdraws = true;
  self.engine.withdraw(operation);
  self.withdraws = false;
  buffer.fill(self.rank, 99);
  const bool was_taken = operation.complete;  // it stays in the pool
  self.note_step(was_taken ? 1 : 2);
}
// Rank 0 sends a message that it may take back, and one that says that this was all.
void withdrawals(Rank& self) {
  Shared buffer(in_pieces);
  if (self.rank == 0) {
    withdraw_one(self, buffer, 1);
    send_shared(self, buffer, 2, 1);
    return;
  }
  int last = 0;
  while (last != 2) {
    MessageOperation& operation = start_receive(self, buffer, any_tag, 0);
    self.under_way[0] = &operation;
    self.engine.wait(operation);
    const MessageStatus status = self.engine.finish(operation);
    if (status.tag <= last) fail("gets messages in another order");
    last = status.tag;
    buffer.expect_filled(0, in_pieces, 0, last);
    buffer.fill(self.rank, -last);
    self.note_step(static_cast<std::uint64_t>(last));
  }
}

// ---- ends

bool ends_with_error(Rank& self, MessageOperation& operation) {
  self.under_way[0] = &operation;
  try {
    self.engine.wait(operation);
  } catch (const Error& error) {
    self.engine.withdraw(operation);
    return error.code() == ErrorCode::peer_dead;
  }
  return false;
}

// What was sent before the end still comes; behind it there is an error instead of a wait.
void end_of_sender(Rank& self) {
  Shared buffer(in_pieces);
  if (self.rank == 0) {
    send(self, 1, in_cell, 1);
    send_shared(self, buffer, 2, 1);
    send(self, 3, in_slot, 1);
    return self.engine.near()->end();
  }
  receive(self, 1, in_cell, 0);
  receive_shared(self, buffer, 2, 0);
  receive(self, 3, in_slot, 0);
  if (!ends_with_error(self, start_receive(self, buffer, 4, 0))) fail("waits for a rank that left");
}
void end_of_receiver(Rank& self) {
  Shared buffer(in_pieces);
  if (self.rank == 1) {
    receive_shared(self, buffer, 1, 0);
    return self.engine.near()->end();
  }
  send_shared(self, buffer, 1, 1);
  buffer.fill(0, 2);
  if (!ends_with_error(self, start_send(self, buffer, 2, 1))) fail("offers to a rank that left");
  buffer.fill(0, 3);
}

constexpr Scenario all[] = {
    {"cells_go_round", one_way<in_cell, in_cell, in_cell, in_cell, in_cell, in_cell>},
    {"slots_go_round", one_way<in_slot, in_slot, in_slot, in_slot, in_slot>},
    {"long_slots_go_round", one_way<in_slot, in_long_slot, in_long_slot, in_slot, in_long_slot>},
    {"cells_and_slots", one_way<in_cell, in_slot, in_cell, in_long_slot, in_slot, in_cell>},
    {"offers_between_slots", one_way<in_slot, in_cell, in_pieces, in_slot>},
    {"there_and_back", there_and_back},
    {"crossing", crossing},
    {"unexpected", unexpected},
    {"full_ring", full_ring},
    {"probed", probed},
    {"any_sender", any_sender, 3},
    {"offers_by_both", offers<2>, 2, Mechanism::both},
    {"offers_by_receiver", offers<2>, 2, Mechanism::receiver},
    {"offers_by_sender", offers<2>, 2, Mechanism::sender},
    {"offers_of_private_memory", offers_of_private_memory},
    {"pipelines", pipelines},
    {"transfer_used_again", transfer_used_again, 2, Mechanism::receiver},
    {"two_offers", two_offers},
    {"offer_against_cell", offer_against_cell},
    {"offer_too_long", offer_too_long},
    {"withdrawals", withdrawals, 2, Mechanism::receiver},
    {"end_of_sender", end_of_sender},
    {"end_of_receiver", end_of_receiver},
};

}  // namespace

std::span<const Scenario> scenarios() { return all; }

const Scenario* find_scenario(const char* name) {
  const auto found = std::ranges::find_if(
      all, [&](const Scenario& scenario) { return std::strcmp(scenario.name, name) == 0; });
  return found != std::end(all) ? found : nullptr;
}

}  // namespace ropewalk::model::messages
