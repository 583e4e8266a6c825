// One send or receive of this rank, from its call to its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "channel/device_memory.hpp"
#include "channel/peer_memory.hpp"
#include "messages/transfer.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::messages {

// MessageProgress describes the bytes of a message on their way, as one of its two ranks sees them.
struct MessageProgress {
  Transfer* transfer = nullptr;  // null: the message is not offered, or its bytes have come
  std::uint64_t number = 0;      // of the transfer's use
  bool answered = false;
  bool failed = false;  // a copy of this rank's
  Way way = Way::receiver;
  std::size_t bytes = 0;
  std::size_t piece_bytes = 0;
  std::uint32_t pieces = 0;
  std::uint32_t begun = 0;      // pieces that its device has begun to copy
  std::uint32_t done = 0;       // pieces that this rank has copied itself
  std::uint32_t emptied = 0;    // pieces that the receiver has copied out of a pipeline
  std::uint64_t seen_sent = 0;  // pieces of the sender that the receiver has seen
  channel::Reference there;     // the other rank's buffer
  std::byte* mapped = nullptr;  // the same as it is seen here; null: by the kernel, or not at all
  std::byte* buffer = nullptr;  // of a pipeline, as it is seen here
  // Of this rank's buffer, in device memory; null: not begun, failed, or memory of the host.
  std::unique_ptr<channel::DeviceCopies> copies;
};

struct MessageOperation {
  bool is_send = false;
  bool complete = false;
  int peer = any_source;  // the rank that was named; may be any_source
  int tag = any_tag;
  std::byte* data = nullptr;
  std::size_t bytes = 0;                     // of the buffer
  channel::DeviceContext* device = nullptr;  // whose memory the buffer is; null: the host's
  std::unique_ptr<std::byte[]> staged;       // a device's bytes on their way through the host
  MessageStatus status;
  std::optional<Error> error;  // thrown by whoever waits
  MessageProgress progress;
  mpi::Request request;  // of a message to or from another node
  bool posted = false;   // in the list of receives without a message
  // The list that it is in.
  bool listed = false;
  MessageOperation* before = nullptr;
  MessageOperation* next = nullptr;
};

// A list of operations in the order they were added. An operation is in one list at most.
class OperationList {
 public:
  OperationList() = default;
  OperationList(OperationList&&) = default;  // while it is empty: operations do not follow
  OperationList& operator=(OperationList&&) = delete;

  bool empty() const noexcept { return first_ == nullptr; }
  MessageOperation* first() const noexcept { return first_; }
  void add(MessageOperation& operation) noexcept {
    operation.before = last_;
    operation.next = nullptr;
    (last_ != nullptr ? last_->next : first_) = &operation;
    last_ = &operation;
    operation.listed = true;
  }
  void add_first(MessageOperation& operation) noexcept {
    operation.before = nullptr;
    operation.next = first_;
    (first_ != nullptr ? first_->before : last_) = &operation;
    first_ = &operation;
    operation.listed = true;
  }
  // Does nothing to an operation that is in no list.
  void remove(MessageOperation& operation) noexcept {
    if (!operation.listed) return;
    (operation.before != nullptr ? operation.before->next : first_) = operation.next;
    (operation.next != nullptr ? operation.next->before : last_) = operation.before;
    operation.before = operation.next = nullptr;
    operation.listed = false;
  }
  // Calls `advance` for each, and removes those for which it returns true. Operations may be added
  // meanwhile.
  template <class Advance>
  void advance_all(Advance&& advance) {
    for (MessageOperation* each = first_; each != nullptr;) {
      MessageOperation& operation = *each;
      const bool over = advance(operation);
      each = operation.next;
      if (over) remove(operation);
    }
  }

 private:
  MessageOperation* first_ = nullptr;
  MessageOperation* last_ = nullptr;
};

// Operations of nonblocking calls, kept for later ones: a call in a steady state allocates nothing.
class OperationPool {
 public:
  MessageOperation& take() {
    if (free_.empty()) {
      all_.push_back(std::make_unique<MessageOperation>());
      free_.reserve(all_.size());  // so that put() never allocates
      return *all_.back();
    }
    MessageOperation& operation = *free_.back();
    free_.pop_back();
    operation = MessageOperation{};
    return operation;
  }
  // Waits for copies of a device that are still under way.
  void put(MessageOperation& operation) noexcept {
    operation.progress.copies.reset();
    operation.staged.reset();
    free_.push_back(&operation);
  }

 private:
  std::vector<std::unique_ptr<MessageOperation>> all_;
  std::vector<MessageOperation*> free_;
};

}  // namespace ropewalk::messages
