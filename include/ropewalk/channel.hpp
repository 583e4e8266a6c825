// Messages between two ranks, by whichever mechanism is fastest for their size and their buffers:
// inside a node through shared memory, between nodes through MPI (after Potluri et al. 2013).
//
//   ropewalk::Channel channel(ropewalk::Communicator::world());
//   if (channel.rank() == 0) channel.send(data, bytes, 1);
//   if (channel.rank() == 1) channel.receive(data, bytes, 0);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ropewalk/communicator.hpp"
#include "ropewalk/detail/unwinding.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/export.hpp"

namespace ropewalk {

// How the bytes of a message went.
enum class Mechanism {
  none,      // no message yet
  inlined,   // beside the flag that announces the message
  slots,     // through a buffer of the pair: one copy in, one copy out
  receiver,  // copied by the receiver, straight from the sender's buffer
  sender,    // copied by the sender, straight into the receiver's buffer
  both,      // each of the two copies a part, straight from buffer to buffer
  pipeline,  // private memory, in pieces through a buffer of the pair: the sender copies them in
             // while the receiver copies earlier ones out
  mpi,       // by the MPI underneath
  threaded   // straight from buffer to buffer as receiver, sender, or both, by all threads of this
             // rank (ChannelOptions::threads)
};
RW_EXPORT const char* name(Mechanism);

// These stand in place of a source or a tag, and mean any of them.
inline constexpr int any_source = -1;
inline constexpr int any_tag = -1;
// Every channel takes tags from 0 to this, which is what the MPI standard promises of MPI_TAG_UB.
// Channel::tag_bound() says how many more it takes.
inline constexpr int largest_tag = 32767;

// What a message was: its sender, its tag and its length.
struct MessageStatus {
  int source = any_source;
  int tag = any_tag;
  std::size_t bytes = 0;
};

struct ChannelOptions {
  // The mechanism of messages that do not travel beside their flags; none: the fastest. For
  // benches and tests; the same on all ranks. Where it cannot serve a message, as `sender` for a
  // private buffer that the kernel does not write to, another one does.
  Mechanism force = Mechanism::none;
  // So many threads of this rank copy a large message, the caller of the channel among them; 1 to
  // 64, and each rank may have another number. The others are started with the channel; between
  // messages they sleep. They pay for ranks that leave cores idle, for messages of
  // channel.threaded_bytes and more. Throws Error(system) on all ranks where one cannot start them.
  int threads = 1;
};

namespace messages {
class MessageEngine;
struct MessageOperation;
}  // namespace messages

// A message under way. Destruction waits until it is complete; while an exception unwinds the
// stack, it withdraws the message instead.
class RW_EXPORT MessageRequest {
 public:
  MessageRequest() = default;  // complete
  MessageRequest(MessageRequest&&) noexcept;
  MessageRequest& operator=(MessageRequest&&) noexcept;
  ~MessageRequest();

  // Whether it is complete; moves messages on. Throws what went wrong with this message.
  bool test();
  void wait();
  // Whether it is over: a test or wait has found it complete or failed.
  bool done() const noexcept { return operation_ == nullptr; }
  // Takes back a receive that no message has been found for yet, and returns true: what comes goes
  // to another receive. Of any other message returns false, and leaves it as it is.
  bool cancel() noexcept;
  // Describes a message that is complete. A send says what was sent.
  const MessageStatus& status() const noexcept { return status_; }

 private:
  friend class Channel;
  friend class PersistentMessage;
  using Engine = std::shared_ptr<messages::MessageEngine>;
  MessageRequest(Engine, messages::MessageOperation*);
  explicit MessageRequest(const MessageStatus& status) : status_(status) {}
  static MessageRequest send(const Engine&, const void*, std::size_t bytes, int to, int tag);
  static MessageRequest receive(const Engine&, void*, std::size_t bytes, int from, int tag);
  void finish();
  void end() noexcept;

  Engine engine_;
  messages::MessageOperation* operation_ = nullptr;  // null: complete
  MessageStatus status_;
  detail::Unwinding unwinding_;
};

class Channel;

// A message that is sent or received again and again, with the same buffer, rank and tag. Its
// channel, which may be moved, must outlive it.
class RW_EXPORT PersistentMessage {
 public:
  PersistentMessage() = default;
  // Throws Error(argument) while the one before is not complete.
  void start();
  bool test();
  void wait();
  bool done() const noexcept { return request_.done(); }
  bool cancel() noexcept { return request_.cancel(); }
  const MessageStatus& status() const noexcept { return request_.status(); }

 private:
  friend class Channel;
  std::shared_ptr<messages::MessageEngine> engine_;  // of its channel
  bool is_send_ = false;
  std::byte* receive_ = nullptr;
  const std::byte* send_ = nullptr;
  std::size_t bytes_ = 0;
  int rank_ = 0;
  int tag_ = 0;
  MessageRequest request_;
};

// Two-sided messages among the ranks of an MPI communicator, which must outlive this object.
// Construction is collective, and so is destruction, but nobody waits in it: every message must
// have been waited for. One thread at a time makes calls; several channels may be used by several
// threads.
//
// Messages from one rank to another are matched in the order they were sent, by tag, as in MPI; a
// receive may leave its source, its tag, or both open. Messages of a channel meet neither messages
// of MPI nor those of another channel. A send of up to slot_bytes() is complete when it returns; a
// longer one may wait for its receiver. While a thread waits in a call of this channel, of another
// one, of a window or of collectives, it moves on what it has begun in all of its channels, and
// MPI's messages. A channel belongs to the thread that has made the last call.
//
// A buffer may be memory of a CUDA device, where the program has used the device before it makes
// the channel: it has then loaded the driver, libcuda.so.1, which ropewalk calls and never loads.
// The caller's work on the buffer must have ended before the message begins, as by
// cuStreamSynchronize(); the message is in the buffer when it is complete. The current context of
// the thread stays as it is. ROPEWALK_DEVICE_BUFFERS=off: no buffer is a device's.
//
// Errors: Error(argument) for a rank or a tag that there is none of, and for a message longer than
// the buffer of its receive (the message is dropped); Error(peer_dead) when a rank of this node has
// died, or when the other rank has ended its channel; Error(system) where the driver of a device
// fails, with the names of its call and of its error, and at both ends where both have begun the
// message.
class RW_EXPORT Channel {
 public:
  explicit Channel(Communicator, const ChannelOptions& = {});
  ~Channel();
  Channel(Channel&&) noexcept;
  Channel& operator=(Channel&&) noexcept;

  int rank() const noexcept;
  int size() const noexcept;
  // Whether messages to this rank go through shared memory; the others go to MPI.
  bool is_near(int rank) const;
  const std::string& reason() const noexcept;  // why no message does; empty where some do
  // Tags are 0 to this: all that an int holds where all ranks are near, else what MPI has.
  int tag_bound() const noexcept;
  // Up to so many bytes a message is copied on its way, and its send does not wait.
  std::size_t slot_bytes() const noexcept;
  // Returns the mechanism of the last message that this rank has received.
  Mechanism last_mechanism() const noexcept;

  void send(const void* data, std::size_t bytes, int to, int tag = 0);
  MessageStatus receive(void* data, std::size_t bytes, int from, int tag = 0);
  // Both at once, in whatever order the two come; the buffers must not overlap.
  MessageStatus send_receive(const void* send, std::size_t send_bytes, int to, int send_tag,
                             void* receive, std::size_t receive_bytes, int from, int receive_tag);

  // The buffers belong to the message until it is complete.
  [[nodiscard]] MessageRequest start_send(const void* data, std::size_t bytes, int to, int tag = 0);
  [[nodiscard]] MessageRequest start_receive(void* data, std::size_t bytes, int from, int tag = 0);

  // The message is not started yet.
  PersistentMessage prepare_send(const void* data, std::size_t bytes, int to, int tag = 0);
  PersistentMessage prepare_receive(void* data, std::size_t bytes, int from, int tag = 0);

  // Returns the first message that a receive from there with this tag would take, if one has come.
  std::optional<MessageStatus> probe(int from, int tag = any_tag);

 private:
  std::shared_ptr<messages::MessageEngine> engine_;
};

}  // namespace ropewalk
