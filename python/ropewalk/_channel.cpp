// Messages between two ranks, on arrays of others. channel.py explains each call; here arguments
// are checked, and the GIL is released while a call runs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "_core.hpp"
#include "_messages.hpp"
#include "_numpy.hpp"
#include "_sides.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/error.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ropewalk::python {
namespace {

// ---- arguments ----------------------------------------------------------------------------------

// An object of channel.py that leaves a source or a tag open. It is no number, because -1 and -2
// mean different things to each MPI.
nb::handle wildcard(nb::handle& place, const char* name) {
  return numpy::kept(
      place, [&] { return nb::object(nb::module_::import_("ropewalk.channel").attr(name)); });
}

std::string ranks_of(const HeldChannel& self) {
  return ", expected 0 to " + std::to_string(self.get().size() - 1);
}

// None is no rank.
std::optional<int> destination_of(const HeldChannel& self, nb::handle given) {
  if (given.is_none()) return std::nullopt;
  const int rank = whole_number(given, "destination");
  if (rank >= 0 && rank < self.get().size()) return rank;
  refuse("destination: rank " + std::to_string(rank) + ranks_of(self) +
         ", or None for no rank, as in place of MPI.PROC_NULL");
}

int rank_or_any(const HeldChannel& self, nb::handle given) {
  static constinit nb::handle any;
  if (given.is(wildcard(any, "any_source"))) return any_source;
  const int rank = whole_number(given, "source");
  if (rank >= 0 && rank < self.get().size()) return rank;
  refuse("source: rank " + std::to_string(rank) + ranks_of(self) +
         ", or ropewalk.any_source in place of MPI.ANY_SOURCE, or None for no rank, as in place of "
         "MPI.PROC_NULL");
}

std::optional<int> source_of(const HeldChannel& self, nb::handle given) {
  return given.is_none() ? std::nullopt : std::optional(rank_or_any(self, given));
}

int tag_of(const HeldChannel& self, nb::handle given, const char* name, bool open) {
  static constinit nb::handle any;
  if (open && given.is(wildcard(any, "any_tag"))) return any_tag;
  const int tag = whole_number(given, name);
  const int bound = self.get().tag_bound();
  if (tag >= 0 && tag <= bound) return tag;
  refuse(std::string(name) + ": " + std::to_string(tag) + ", expected 0 to " +
         std::to_string(bound) + (open ? ", or ropewalk.any_tag in place of MPI.ANY_TAG" : ""));
}

void check_apart(const Side& sent, const Side& received) {
  const auto* first = static_cast<const std::byte*>(sent.data);
  const auto* second = static_cast<const std::byte*>(received.data);
  if (sent.bytes() == 0 || received.bytes() == 0) return;
  if (first + sent.bytes() <= second || second + received.bytes() <= first) return;
  refuse("out: overlaps the array that is sent, expected other memory; pass a copy of one");
}

// ---- calls --------------------------------------------------------------------------------------

void send_to(HeldChannel& self, const Side& side, std::optional<int> to, int tag) {
  if (!to) return static_cast<void>(self.get());
  run(self, [&](Channel& channel) { channel.send(side.data, side.bytes(), *to, tag); });
}

void send(HeldChannel& self, nb::handle array, nb::handle destination, nb::handle tag_given) {
  const auto to = destination_of(self, destination);
  const int tag = tag_of(self, tag_given, "tag", false);
  send_to(self, message_input(array), to, tag);
}

// A call that receives.
template <class Call>
auto receiving(HeldChannel& self, Call call) {
  try {
    return run(self, call);
  } catch (const Error& error) {
    throw of_array(error);
  }
}

MessageStatus receive_from(HeldChannel& self, const Side& side, std::optional<int> from, int tag) {
  if (!from) return self.get(), of_nobody(tag);
  return receiving(
      self, [&](Channel& channel) { return channel.receive(side.data, side.bytes(), *from, tag); });
}

StatusWords receive(HeldChannel& self, nb::handle out, nb::handle source, nb::handle tag_given) {
  const auto from = source_of(self, source);
  const int tag = tag_of(self, tag_given, "tag", true);
  const Side side = message_output(out);
  return words(receive_from(self, side, from, tag), side);
}

StatusWords send_receive(HeldChannel& self, nb::handle array, nb::handle destination,
                         nb::handle out, nb::handle source, nb::handle send_tag,
                         nb::handle receive_tag) {
  const auto to = destination_of(self, destination);
  const auto from = source_of(self, source);
  const int tag_sent = tag_of(self, send_tag, "send_tag", false);
  const int tag_received = tag_of(self, receive_tag, "receive_tag", true);
  const Side sent = message_input(array);
  const Side received = message_output(out);
  check_apart(sent, received);
  if (!to || !from) {  // one of the two at most
    send_to(self, sent, to, tag_sent);
    return words(receive_from(self, received, from, tag_received), received);
  }
  const auto both = [&](Channel& channel) {
    return channel.send_receive(sent.data, sent.bytes(), *to, tag_sent, received.data,
                                received.bytes(), *from, tag_received);
  };
  return words(receiving(self, both), received);
}

// A message with a rank, or with none.
std::unique_ptr<HeldMessage> message_with(HeldChannel& self, Side side, std::optional<int> peer,
                                          int tag) {
  self.get();
  auto message = std::make_unique<HeldMessage>(self, std::move(side));
  message->complete = message->to_nobody = !peer;
  if (!peer) message->last = of_nobody(tag);
  return message;
}

std::unique_ptr<HeldMessage> start_send(HeldChannel& self, nb::handle array, nb::handle destination,
                                        nb::handle tag_given) {
  const auto to = destination_of(self, destination);
  const int tag = tag_of(self, tag_given, "tag", false);
  auto message = message_with(self, message_input(array), to, tag);
  if (!to) return message;
  run(self, [&, &side = message->started.side](Channel& channel) {
    message->started.message = channel.start_send(side.data, side.bytes(), *to, tag);
  });
  return message;
}

std::unique_ptr<HeldMessage> start_receive(HeldChannel& self, nb::handle out, nb::handle source,
                                           nb::handle tag_given) {
  const auto from = source_of(self, source);
  const int tag = tag_of(self, tag_given, "tag", true);
  auto message = message_with(self, message_output(out), from, tag);
  if (!from) return message;
  receiving(self, [&, &side = message->started.side](Channel& channel) {
    message->started.message = channel.start_receive(side.data, side.bytes(), *from, tag);
  });
  return message;
}

std::unique_ptr<HeldMessage> prepare_send(HeldChannel& self, nb::handle array,
                                          nb::handle destination, nb::handle tag_given) {
  const auto to = destination_of(self, destination);
  const int tag = tag_of(self, tag_given, "tag", false);
  auto message = message_with(self, message_input_in_place(array), to, tag);
  const Side& side = message->started.side;
  if (to) message->started.message = self.get().prepare_send(side.data, side.bytes(), *to, tag);
  message->complete = true;
  return message;
}

std::unique_ptr<HeldMessage> prepare_receive(HeldChannel& self, nb::handle out, nb::handle source,
                                             nb::handle tag_given) {
  const auto from = source_of(self, source);
  const int tag = tag_of(self, tag_given, "tag", true);
  auto message = message_with(self, message_output(out), from, tag);
  const Side& side = message->started.side;
  if (from) {
    message->started.message = self.get().prepare_receive(side.data, side.bytes(), *from, tag);
  }
  message->complete = true;
  return message;
}

std::optional<std::tuple<int, int, std::size_t>> probe(HeldChannel& self, nb::handle source,
                                                       nb::handle tag_given) {
  const int from = rank_or_any(self, source);
  const int tag = tag_of(self, tag_given, "tag", true);
  const auto found = run(self, [&](Channel& channel) { return channel.probe(from, tag); });
  if (!found) return std::nullopt;
  return std::tuple(found->source, found->tag, found->bytes);
}

// ---- begin and end ------------------------------------------------------------------------------

std::unique_ptr<HeldChannel> make(std::optional<std::uintptr_t> handle, int threads) {
  return std::make_unique<HeldChannel>(
      std::make_unique<Channel>(communicator(handle), ChannelOptions{.threads = threads}));
}

void close(HeldChannel& self) {
  if (self.value == nullptr) return;
  const OneCall one(self.in_use, "channel");
  self.tidy();
  // With the GIL, so that no other thread changes the list meanwhile.
  const auto left =
      std::count_if(self.messages.begin(), self.messages.end(), [](HeldMessage* each) {
        std::exception_ptr met;
        return !each->is_over() && !each->conclude(each->look(false, met), met);
      });
  if (left != 0) {
    refuse("channel: " + std::to_string(left) +
           " of its messages are under way; wait for each before it is closed");
  }
  for (HeldMessage* each : self.messages) each->started.destroy_at_once();
  std::vector<Started> dropped = std::exchange(self.dropped, {});
  const nb::gil_scoped_release released;
  for (Started& each : dropped) each.message = MessageRequest();  // waits
  self.value.reset();
}

// Takes back what is under way, and ends the channel without waiting for anybody.
void abort(HeldChannel& self) {
  if (self.value == nullptr || !self.is_own()) return;
  const OneCall one(self.in_use, "channel");
  for (HeldMessage* each : self.messages) each->started.destroy_at_once();
  std::vector<Started> dropped = std::exchange(self.dropped, {});
  for (Started& each : dropped) each.destroy_at_once();
  const nb::gil_scoped_release released;
  destroy_at_once(std::move(self.value));
}

// ---- the module ---------------------------------------------------------------------------------

void define_questions(nb::class_<HeldChannel>& channel) {
  channel.def("rank", [](const HeldChannel& self) { return self.get().rank(); })
      .def("size", [](const HeldChannel& self) { return self.get().size(); })
      .def("is_near", [](const HeldChannel& self, int rank) { return self.get().is_near(rank); })
      .def("reason", [](const HeldChannel& self) { return self.get().reason(); })
      .def("slot_bytes", [](const HeldChannel& self) { return self.get().slot_bytes(); })
      .def("last_mechanism",
           [](const HeldChannel& self) { return std::string(name(self.get().last_mechanism())); })
      .def("closed", [](const HeldChannel& self) { return self.value == nullptr; });
}

}  // namespace

void define_channel(nb::module_& module) {
  define_message(module);
  nb::class_<HeldChannel> channel(module, "Channel");
  define_questions(channel);
  // None may stand for any argument, and is refused by name.
  const auto method = [&](const char* name, auto function, auto... arguments) {
    channel.def(name, function, arguments...);
  };
  const auto any = nb::arg().none();
  method("send", &send, any, any, any);
  method("receive", &receive, any, any, any);
  method("send_receive", &send_receive, any, any, any, any, any, any);
  method("start_send", &start_send, any, any, any);
  method("start_receive", &start_receive, any, any, any);
  method("prepare_send", &prepare_send, any, any, any);
  method("prepare_receive", &prepare_receive, any, any, any);
  method("probe", &probe, any, any);
  channel.def("close", &close).def("abort", &abort);
  module.def("channel", &make, "handle"_a.none(), "threads"_a, release_gil());
}

}  // namespace ropewalk::python
