// This file is the C interface of channels and their messages.
#include <algorithm>
#include <climits>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "c_call.hpp"
#include "c_struct.hpp"
#include "mpi/collectively.hpp"
#include "ropewalk/channel.hpp"

static_assert(RW_MECHANISM_MPI == static_cast<int>(ropewalk::Mechanism::mpi));
static_assert(RW_MECHANISM_THREADED == static_cast<int>(ropewalk::Mechanism::threaded));
static_assert(RW_ANY_SOURCE == ropewalk::any_source && RW_ANY_TAG == ropewalk::any_tag);
static_assert(RW_LARGEST_TAG == ropewalk::largest_tag);

// This is a message of one call, or one prepared to be started again and again.
struct rw_message {
  rw_channel* channel = nullptr;
  ropewalk::MessageRequest request;
  std::optional<ropewalk::PersistentMessage> prepared;
};

struct rw_channel {
  rw_channel(ropewalk::Communicator communicator, const ropewalk::ChannelOptions& options)
      : channel(communicator, options) {}
  ropewalk::Channel channel;
  // The first list has all messages that were ever needed at a time, the second those that are not
  // in use: a call in a steady state allocates nothing.
  std::vector<std::unique_ptr<rw_message>> messages;
  std::vector<rw_message*> spare;
};

namespace ropewalk {
namespace {

ChannelOptions options_of(const rw_channel_options* given) {
  constexpr std::size_t oldest = offsetof(rw_channel_options, force) + sizeof(int);
  rw_channel_options options = RW_CHANNEL_OPTIONS_INIT;
  if (given != nullptr) {
    options = read_struct(given, oldest, options, "options", "rw_channel_options");
  }
  if (options.force < RW_MECHANISM_NONE || options.force > RW_MECHANISM_THREADED) {
    throw Error(ErrorCode::argument,
                "options.force: " + std::to_string(options.force) +
                    "; pass one of RW_MECHANISM_NONE to RW_MECHANISM_THREADED");
  }
  return {.force = static_cast<Mechanism>(options.force),
          .threads = static_cast<int>(std::min<std::size_t>(options.threads, INT_MAX))};
}

// Before a message is touched: where the status is wrong, no message is lost.
void check_status(const rw_message_status* status) {
  constexpr std::size_t oldest = offsetof(rw_message_status, bytes) + sizeof(std::size_t);
  if (status == nullptr) return;
  check_struct_size(status->size, oldest, sizeof *status, "status", "rw_message_status");
}

void tell(rw_message_status* out, const MessageStatus& status) {
  if (out == nullptr) return;
  write_struct(out, rw_message_status{0, status.source, status.tag, status.bytes});
}

rw_message& take(rw_channel& channel) {
  if (channel.spare.empty()) {
    channel.messages.push_back(std::make_unique<rw_message>());
    channel.spare.reserve(channel.messages.size());  // so that give_back() never allocates
    channel.messages.back()->channel = &channel;
    return *channel.messages.back();
  }
  rw_message& message = *channel.spare.back();
  channel.spare.pop_back();
  return message;
}

void give_back(rw_message& message) noexcept {
  message.request = {};
  message.prepared.reset();
  message.channel->spare.push_back(&message);
}

// Makes a message of the channel, which `begin` begins.
template <class Begin>
int make_message(rw_channel* channel, rw_message** out, Begin&& begin) {
  return c_call([&] {
    require_argument(channel, "channel");
    require_argument(out, "out");
    rw_message& message = take(*channel);
    try {
      begin(message);
    } catch (...) {
      give_back(message);
      throw;
    }
    *out = &message;
  });
}

bool test(rw_message& message) {
  return message.prepared ? message.prepared->test() : message.request.test();
}

const MessageStatus& status_of(const rw_message& message) {
  return message.prepared ? message.prepared->status() : message.request.status();
}

void start(rw_message& message) {
  if (!message.prepared) {
    throw Error(ErrorCode::argument,
                "message: was started when it was made, expected one of rw_channel_prepare_send or "
                "rw_channel_prepare_receive; start another one");
  }
  message.prepared->start();
}

void require_no_messages(const rw_channel& channel) {
  const std::size_t left = channel.messages.size() - channel.spare.size();
  if (left == 0) return;
  throw Error(ErrorCode::argument, "channel: " + std::to_string(left) +
                                       " of its messages are not freed; pass each to "
                                       "rw_message_free first");
}

}  // namespace
}  // namespace ropewalk

using ropewalk::c_call;
using ropewalk::check_status;
using ropewalk::make_message;
using ropewalk::require_argument;
using ropewalk::tell;

extern "C" {

int rw_channel_create(rw_mpi_comm comm, const rw_channel_options* options, rw_channel** out) {
  return c_call([&] {
    const ropewalk::Communicator communicator(comm);
    ropewalk::ChannelOptions wanted;
    ropewalk::mpi::collectively({communicator.handle()}, [&] {
      require_argument(out, "out");
      wanted = ropewalk::options_of(options);
    });
    *out = new rw_channel(communicator, wanted);
  });
}

int rw_channel_free(rw_channel* channel) {
  return c_call([&] {
    if (channel == nullptr) return;
    ropewalk::require_no_messages(*channel);
    delete channel;
  });
}

int rw_channel_is_near(const rw_channel* channel, int rank, int* out) {
  return c_call([&] {
    require_argument(channel, "channel");
    require_argument(out, "out");
    *out = channel->channel.is_near(rank) ? 1 : 0;
  });
}

int rw_channel_slot_bytes(const rw_channel* channel, size_t* out) {
  return c_call([&] {
    require_argument(channel, "channel");
    require_argument(out, "out");
    *out = channel->channel.slot_bytes();
  });
}

int rw_channel_last_mechanism(const rw_channel* channel, int* out) {
  return c_call([&] {
    require_argument(channel, "channel");
    require_argument(out, "out");
    *out = static_cast<int>(channel->channel.last_mechanism());
  });
}

int rw_mechanism_name(int mechanism, const char** out) {
  return c_call([&] {
    require_argument(out, "out");
    if (mechanism < RW_MECHANISM_NONE || mechanism > RW_MECHANISM_THREADED) {
      throw ropewalk::Error(ropewalk::ErrorCode::argument,
                            "mechanism: " + std::to_string(mechanism) +
                                "; pass one of RW_MECHANISM_NONE to RW_MECHANISM_THREADED");
    }
    *out = ropewalk::name(static_cast<ropewalk::Mechanism>(mechanism));
  });
}

int rw_channel_send(rw_channel* channel, const void* data, size_t bytes, int to, int tag) {
  return c_call([&] {
    require_argument(channel, "channel");
    channel->channel.send(data, bytes, to, tag);
  });
}

int rw_channel_receive(rw_channel* channel, void* data, size_t bytes, int from, int tag,
                       rw_message_status* status) {
  return c_call([&] {
    require_argument(channel, "channel");
    check_status(status);
    tell(status, channel->channel.receive(data, bytes, from, tag));
  });
}

int rw_channel_send_receive(rw_channel* channel, const void* send, size_t send_bytes, int to,
                            int send_tag, void* receive, size_t receive_bytes, int from,
                            int receive_tag, rw_message_status* status) {
  return c_call([&] {
    require_argument(channel, "channel");
    check_status(status);
    tell(status, channel->channel.send_receive(send, send_bytes, to, send_tag, receive,
                                               receive_bytes, from, receive_tag));
  });
}

int rw_channel_probe(rw_channel* channel, int from, int tag, int* found,
                     rw_message_status* status) {
  return c_call([&] {
    require_argument(channel, "channel");
    require_argument(found, "found");
    check_status(status);
    const std::optional<ropewalk::MessageStatus> come = channel->channel.probe(from, tag);
    if (come) tell(status, *come);
    *found = come ? 1 : 0;
  });
}

int rw_channel_start_send(rw_channel* channel, const void* data, size_t bytes, int to, int tag,
                          rw_message** out) {
  return make_message(channel, out, [&](rw_message& message) {
    message.request = channel->channel.start_send(data, bytes, to, tag);
  });
}

int rw_channel_start_receive(rw_channel* channel, void* data, size_t bytes, int from, int tag,
                             rw_message** out) {
  return make_message(channel, out, [&](rw_message& message) {
    message.request = channel->channel.start_receive(data, bytes, from, tag);
  });
}

int rw_channel_prepare_send(rw_channel* channel, const void* data, size_t bytes, int to, int tag,
                            rw_message** out) {
  return make_message(channel, out, [&](rw_message& message) {
    message.prepared = channel->channel.prepare_send(data, bytes, to, tag);
  });
}

int rw_channel_prepare_receive(rw_channel* channel, void* data, size_t bytes, int from, int tag,
                               rw_message** out) {
  return make_message(channel, out, [&](rw_message& message) {
    message.prepared = channel->channel.prepare_receive(data, bytes, from, tag);
  });
}

int rw_message_start(rw_message* message) {
  return c_call([&] {
    require_argument(message, "message");
    ropewalk::start(*message);
  });
}

int rw_message_test(rw_message* message, int* done, rw_message_status* status) {
  return c_call([&] {
    require_argument(message, "message");
    require_argument(done, "done");
    check_status(status);
    const bool complete = ropewalk::test(*message);
    if (complete) tell(status, ropewalk::status_of(*message));
    *done = complete ? 1 : 0;
  });
}

int rw_message_wait(rw_message* message, rw_message_status* status) {
  return c_call([&] {
    require_argument(message, "message");
    check_status(status);
    message->prepared ? message->prepared->wait() : message->request.wait();
    tell(status, ropewalk::status_of(*message));
  });
}

int rw_message_free(rw_message* message) {
  return c_call([&] {
    if (message != nullptr) ropewalk::give_back(*message);
  });
}

}  // extern "C"
