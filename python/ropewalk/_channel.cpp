// Messages between two ranks, on arrays of others. channel.py explains each call; here arguments
// are checked, and the GIL is released while a call runs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <sched.h>

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
#include "_sides.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/error.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ropewalk::python {
namespace {

struct HeldMessage;

struct HeldChannel : Held<Channel> {
  using Held::Held;
  Channel& get() const {
    if (value == nullptr) refuse("channel: closed, expected an open one");
    return *value;
  }
  std::vector<HeldMessage*> messages;  // all that were started or prepared and still exist
  bool in_use = false;                 // by a call of some thread; guarded by the GIL
};

template <class Call>
auto run(HeldChannel& self, Call call) {
  Channel& channel = self.get();
  const OneCall one(self.in_use, "channel");
  const nb::gil_scoped_release released;
  return call(channel);
}

// Destroys it as an exception of C++ would: messages are taken back, nobody is waited for.
template <class T>
void destroy_at_once(T owned) noexcept {
  struct Thrown {};
  try {
    const T last = std::move(owned);
    throw Thrown();
  } catch (const Thrown&) {  // thrown for the destructor alone
  }
}

// ---- messages -----------------------------------------------------------------------------------

// The words are (source, tag, bytes, whole elements of the array).
using StatusWords = std::tuple<int, int, std::size_t, std::size_t>;

StatusWords words(const MessageStatus& status, const Side& side) {
  const std::size_t count = side.element_bytes == 0 ? 0 : status.bytes / side.element_bytes;
  return {status.source, status.tag, status.bytes, count};
}

// This message has been started, or prepared to be started again and again. It keeps its array and
// its channel.
struct HeldMessage {
  HeldMessage(HeldChannel& on, Side its) : channel(on), owner(nb::find(on)), side(std::move(its)) {
    channel.messages.push_back(this);
  }
  HeldMessage(const HeldMessage&) = delete;
  HeldMessage& operator=(const HeldMessage&) = delete;
  ~HeldMessage();

  bool test();
  void wait();
  void finish();
  void start();
  StatusWords status() {
    wait();
    return words(last, side);
  }
  void destroy_at_once() {
    python::destroy_at_once(std::move(request));
    python::destroy_at_once(std::move(prepared));
    prepared.reset();
  }

  HeldChannel& channel;
  nb::object owner;
  Side side;
  bool complete = false;
  MessageStatus last;  // of the last one that is complete
  MessageRequest request;
  std::optional<PersistentMessage> prepared;
};

void HeldMessage::finish() {
  last = prepared ? prepared->status() : request.status();
  complete = true;
}

bool HeldMessage::test() {
  if (complete) return true;
  if (run(channel, [&](Channel&) { return prepared ? prepared->test() : request.test(); })) {
    finish();
  }
  return complete;
}

void HeldMessage::wait() {
  if (complete) return;
  run(channel, [&](Channel&) { prepared ? prepared->wait() : request.wait(); });
  finish();
}

void HeldMessage::start() {
  run(channel, [&](Channel&) { prepared->start(); });
  complete = false;
}

// Waits; not where the channel has been closed, nor where other ranks may never come.
HeldMessage::~HeldMessage() {
  std::erase(channel.messages, this);
  if (complete || channel.value == nullptr) return;
  if (abandoned()) {
    static_cast<void>(new MessageRequest(std::move(request)));
    static_cast<void>(new std::optional<PersistentMessage>(std::move(prepared)));
    return;
  }
  while (channel.in_use) {
    const nb::gil_scoped_release released;
    sched_yield();
  }
  const OneCall one(channel.in_use, "channel");
  const nb::gil_scoped_release released;
  request = {};
  prepared.reset();
}

// ---- arguments ----------------------------------------------------------------------------------

int destination_of(const HeldChannel& self, nb::handle given) {
  const int rank = whole_number(given, "destination");
  if (rank >= 0 && rank < self.get().size()) return rank;
  refuse("destination: rank " + std::to_string(rank) + ", expected 0 to " +
         std::to_string(self.get().size() - 1));
}

int source_of(const HeldChannel& self, nb::handle given) {
  const int rank = whole_number(given, "source");
  if (rank >= any_source && rank < self.get().size()) return rank;
  refuse("source: rank " + std::to_string(rank) + ", expected 0 to " +
         std::to_string(self.get().size() - 1) + ", or any_source");
}

int tag_of(const HeldChannel& self, nb::handle given, const char* name, bool open) {
  const int tag = whole_number(given, name);
  const int bound = self.get().tag_bound();
  if (tag >= (open ? any_tag : 0) && tag <= bound) return tag;
  refuse(std::string(name) + ": " + std::to_string(tag) + ", expected 0 to " +
         std::to_string(bound) + (open ? ", or any_tag" : ""));
}

void check_apart(const Side& sent, const Side& received) {
  const auto* first = static_cast<const std::byte*>(sent.data);
  const auto* second = static_cast<const std::byte*>(received.data);
  if (sent.bytes() == 0 || received.bytes() == 0) return;
  if (first + sent.bytes() <= second || second + received.bytes() <= first) return;
  refuse("out: overlaps the array that is sent, expected other memory; pass a copy of one");
}

// ---- calls --------------------------------------------------------------------------------------

void send(HeldChannel& self, nb::handle array, nb::handle destination, nb::handle tag_given) {
  const int to = destination_of(self, destination);
  const int tag = tag_of(self, tag_given, "tag", false);
  const Side side = message_input(array);
  run(self, [&, data = side.data, bytes = side.bytes()](Channel& channel) {
    channel.send(data, bytes, to, tag);
  });
}

StatusWords receive(HeldChannel& self, nb::handle out, nb::handle source, nb::handle tag_given) {
  const int from = source_of(self, source);
  const int tag = tag_of(self, tag_given, "tag", true);
  const Side side = message_output(out);
  return words(run(self, [&, data = side.data, bytes = side.bytes()](
                             Channel& channel) { return channel.receive(data, bytes, from, tag); }),
               side);
}

StatusWords send_receive(HeldChannel& self, nb::handle array, nb::handle destination,
                         nb::handle out, nb::handle source, nb::handle send_tag,
                         nb::handle receive_tag) {
  const int to = destination_of(self, destination);
  const int from = source_of(self, source);
  const int tag_sent = tag_of(self, send_tag, "send_tag", false);
  const int tag_received = tag_of(self, receive_tag, "receive_tag", true);
  const Side sent = message_input(array);
  const Side received = message_output(out);
  check_apart(sent, received);
  return words(run(self,
                   [&](Channel& channel) {
                     return channel.send_receive(sent.data, sent.bytes(), to, tag_sent,
                                                 received.data, received.bytes(), from,
                                                 tag_received);
                   }),
               received);
}

std::unique_ptr<HeldMessage> start_send(HeldChannel& self, nb::handle array, nb::handle destination,
                                        nb::handle tag_given) {
  const int to = destination_of(self, destination);
  const int tag = tag_of(self, tag_given, "tag", false);
  auto message = std::make_unique<HeldMessage>(self, message_input(array));
  run(self, [&](Channel& channel) {
    message->request = channel.start_send(message->side.data, message->side.bytes(), to, tag);
  });
  return message;
}

std::unique_ptr<HeldMessage> start_receive(HeldChannel& self, nb::handle out, nb::handle source,
                                           nb::handle tag_given) {
  const int from = source_of(self, source);
  const int tag = tag_of(self, tag_given, "tag", true);
  auto message = std::make_unique<HeldMessage>(self, message_output(out));
  run(self, [&](Channel& channel) {
    message->request = channel.start_receive(message->side.data, message->side.bytes(), from, tag);
  });
  return message;
}

std::unique_ptr<HeldMessage> prepare_send(HeldChannel& self, nb::handle array,
                                          nb::handle destination, nb::handle tag_given) {
  const int to = destination_of(self, destination);
  const int tag = tag_of(self, tag_given, "tag", false);
  auto message = std::make_unique<HeldMessage>(self, message_input_in_place(array));
  message->prepared = self.get().prepare_send(message->side.data, message->side.bytes(), to, tag);
  message->complete = true;
  return message;
}

std::unique_ptr<HeldMessage> prepare_receive(HeldChannel& self, nb::handle out, nb::handle source,
                                             nb::handle tag_given) {
  const int from = source_of(self, source);
  const int tag = tag_of(self, tag_given, "tag", true);
  auto message = std::make_unique<HeldMessage>(self, message_output(out));
  message->prepared =
      self.get().prepare_receive(message->side.data, message->side.bytes(), from, tag);
  message->complete = true;
  return message;
}

std::optional<std::tuple<int, int, std::size_t>> probe(HeldChannel& self, nb::handle source,
                                                       nb::handle tag_given) {
  const int from = source_of(self, source);
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
  const auto left = std::count_if(self.messages.begin(), self.messages.end(),
                                  [](HeldMessage* each) { return !each->test(); });
  if (left != 0) {
    refuse("channel: " + std::to_string(left) +
           " of its messages are under way; wait for each before it is closed");
  }
  for (HeldMessage* each : self.messages) each->destroy_at_once();
  const OneCall one(self.in_use, "channel");
  const nb::gil_scoped_release released;
  self.value.reset();
}

// Takes back what is under way, and ends the channel without waiting for anybody.
void abort(HeldChannel& self) {
  if (self.value == nullptr) return;
  const OneCall one(self.in_use, "channel");
  for (HeldMessage* each : self.messages) each->destroy_at_once();
  const nb::gil_scoped_release released;
  destroy_at_once(std::move(self.value));
}

// ---- the module ---------------------------------------------------------------------------------

void define_message(nb::module_& module) {
  nb::class_<HeldMessage>(module, "Message")
      .def("start", &HeldMessage::start)
      .def("test", &HeldMessage::test)
      .def("wait", &HeldMessage::wait)
      .def("status", &HeldMessage::status)
      .def("complete", [](const HeldMessage& self) { return self.complete; });
}

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
