#include "_messages.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace nb = nanobind;

namespace ropewalk::python {

HeldChannel::~HeldChannel() {
  for (Started& each : dropped) {
    if (is_abandoned()) {
      static_cast<void>(new Started(std::move(each)));
    } else {
      each.destroy_at_once();
    }
  }
}

// Ends what was dropped. More may be dropped meanwhile, with arrays that end here.
void HeldChannel::tidy() {
  if (dropped.empty()) return;
  std::vector<Started> left = std::exchange(dropped, {});
  std::erase_if(left, [](Started& each) {
    try {
      return each.cancel() || each.test();
    } catch (const Error&) {  // nobody is left to be told
      each.destroy_at_once();
      return true;
    }
  });
  std::move(left.begin(), left.end(), std::back_inserter(dropped));
}

namespace {

constexpr int nobody = -2;  // the source of what a receive from no rank gets

}  // namespace

StatusWords words(const MessageStatus& status, const Side& side) {
  const std::size_t count = side.element_bytes == 0 ? 0 : status.bytes / side.element_bytes;
  const auto source = status.source == nobody ? std::nullopt : std::optional(status.source);
  return {source, status.tag, status.bytes, count};
}

MessageStatus of_nobody(int tag) { return {nobody, std::max(tag, 0), 0}; }

Error of_array(const Error& error) {
  constexpr std::string_view named = "bytes: ";
  const std::string_view text = error.what();
  if (error.code() != ErrorCode::argument || !text.starts_with(named)) return error;
  return {error.code(), "out: " + std::string(text.substr(named.size()))};
}

// ---- one message --------------------------------------------------------------------------------

// Returns whether it is complete, or waits until it is. No other message can end what a dead rank
// has ended.
bool HeldMessage::ask(bool until_complete) {
  if (failure) std::rethrow_exception(failure);
  if (complete) return true;
  std::exception_ptr met;
  const bool is_over = run(channel, [&](Channel&) { return look(until_complete, met); });
  return conclude(is_over, met);
}

bool HeldMessage::look(bool until_complete, std::exception_ptr& met) {
  try {
    if (!until_complete) return started.test();
    started.wait();
  } catch (const Error& error) {
    if (!started.is_done() && error.code() != ErrorCode::peer_dead) throw;
    met = std::make_exception_ptr(of_array(error));
  }
  return true;
}

bool HeldMessage::conclude(bool is_over, const std::exception_ptr& met) {
  if (!is_over) return false;
  if (met) {
    failure = met;
    std::rethrow_exception(failure);
  }
  last = started.status();
  return complete = true;
}

// As ask() without a wait, but never throws: another thread may be in a call.
bool HeldMessage::done() {
  if (is_over() || channel.value == nullptr) return true;
  if (channel.in_use) return false;
  try {
    return ask(false);
  } catch (const Error&) {
    return is_over();
  }
}

bool HeldMessage::cancel() {
  if (is_over() || !run(channel, [&](Channel&) { return started.cancel(); })) return false;
  cancelled = true;
  failure = std::make_exception_ptr(
      Error(ErrorCode::argument, "message: cancelled, expected one under way; start another one"));
  return true;
}

void HeldMessage::start() {
  if (to_nobody) return static_cast<void>(channel.get());
  run(channel, [&](Channel&) { std::get<PersistentMessage>(started.message).start(); });
  complete = cancelled = false;
  failure = nullptr;
}

const char* HeldMessage::state() const {
  if (complete) return "complete";
  if (cancelled) return "cancelled";
  if (failure) return "failed";
  return channel.value == nullptr ? "taken back" : "under way";
}

HeldMessage::~HeldMessage() {
  std::erase(channel.messages, this);
  if (!started.is_done()) drop();
}

// Takes back a receive that no message has come for; waits for any other message. Not where other
// ranks may never come, nor for a thread that is in a call: the next call sees to the rest.
void HeldMessage::drop() {
  if (channel.is_abandoned()) return static_cast<void>(new Started(std::move(started)));
  if (channel.in_use) return channel.dropped.push_back(std::move(started));
  const OneCall one(channel.in_use, "channel");
  if (failure) return started.destroy_at_once();
  if (started.cancel()) return;
  const nb::gil_scoped_release released;
  started.message = MessageRequest();
}

void define_message(nb::module_& module) {
  nb::class_<HeldMessage>(module, "Message")
      .def("start", &HeldMessage::start)
      .def("test", [](HeldMessage& self) { return self.ask(false); })
      .def("wait", [](HeldMessage& self) { self.ask(true); })
      .def("status", &HeldMessage::status)
      .def("done", &HeldMessage::done)
      .def("cancel", &HeldMessage::cancel)
      .def("state", &HeldMessage::state);
}

}  // namespace ropewalk::python
