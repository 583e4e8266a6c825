// Messages of a channel as Python holds them: their arrays, their errors, what becomes of them when
// they are dropped.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "_core.hpp"
#include "_sides.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::python {

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

// A message of C++, and its array.
struct Started {
  bool is_done() const {
    return std::visit([](const auto& each) { return each.done(); }, message);
  }
  bool test() {
    return std::visit([](auto& each) { return each.test(); }, message);
  }
  void wait() {
    std::visit([](auto& each) { each.wait(); }, message);
  }
  bool cancel() {
    return std::visit([](auto& each) { return each.cancel(); }, message);
  }
  MessageStatus status() const {
    return std::visit([](const auto& each) { return each.status(); }, message);
  }
  void destroy_at_once() {
    python::destroy_at_once(std::move(message));
    message = MessageRequest();
  }

  Side side;
  std::variant<MessageRequest, PersistentMessage> message;
};

struct HeldMessage;

struct HeldChannel : Held<Channel> {
  using Held::Held;
  HeldChannel(const HeldChannel&) = delete;
  HeldChannel& operator=(const HeldChannel&) = delete;
  ~HeldChannel();

  Channel& get() const {
    if (value == nullptr) refuse("channel: closed, expected an open one");
    return *value;
  }
  void tidy();

  std::vector<HeldMessage*> messages;  // all that were started or prepared and still exist
  std::vector<Started> dropped;        // by the program, while another thread was in a call
  bool in_use = false;                 // by a call of some thread; guarded by the GIL
};

template <class Call>
auto run(HeldChannel& self, Call call) {
  Channel& channel = self.get();
  const OneCall one(self.in_use, "channel");
  self.tidy();
  const nanobind::gil_scoped_release released;
  return call(channel);
}

// The words are (source, tag, bytes, whole elements of the array).
using StatusWords = std::tuple<std::optional<int>, int, std::size_t, std::size_t>;

StatusWords words(const MessageStatus& status, const Side& side);
// What a receive from no rank gets.
MessageStatus of_nobody(int tag);
// The library knows lengths, a caller of Python an array.
Error of_array(const Error& error);

// This message has been started, or prepared to be started again and again. It keeps its array and
// its channel.
struct HeldMessage {
  HeldMessage(HeldChannel& on, Side its) : channel(on), owner(nanobind::find(on)) {
    started.side = std::move(its);
    channel.messages.push_back(this);
  }
  HeldMessage(const HeldMessage&) = delete;
  HeldMessage& operator=(const HeldMessage&) = delete;
  ~HeldMessage();

  bool is_over() const { return complete || failure != nullptr; }
  bool ask(bool until_complete);
  // The two halves of it: what may be done without the GIL, and what is noted with it. The first
  // returns whether the message is over, and by which error.
  bool look(bool until_complete, std::exception_ptr& met);
  bool conclude(bool is_over, const std::exception_ptr& met);
  bool done();
  bool cancel();
  void drop();
  void start();
  const char* state() const;
  StatusWords status() {
    ask(true);
    return words(last, started.side);
  }

  HeldChannel& channel;
  nanobind::object owner;
  Started started;
  bool complete = false;
  bool cancelled = false;
  bool to_nobody = false;      // or from nobody: always complete
  std::exception_ptr failure;  // of this message, told to everyone who asks
  MessageStatus last;          // of the last one that is complete
};

void define_message(nanobind::module_& module);

}  // namespace ropewalk::python
