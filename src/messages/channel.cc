// The public face of messages: arguments are checked here, once.
#include "ropewalk/channel.hpp"

#include <string>
#include <utility>

#include "messages/engine.hpp"

namespace ropewalk {
namespace {

[[noreturn]] void refuse_rank(const char* argument, int rank, int size, bool open) {
  throw Error(ErrorCode::argument,
              std::string(argument) + ": rank " + std::to_string(rank) + " of a channel of " +
                  std::to_string(size) +
                  (open ? "; pass 0 to its size - 1, or any_source" : "; pass 0 to its size - 1"));
}

[[noreturn]] void refuse_tag(int tag, int bound, bool open) {
  throw Error(ErrorCode::argument, "tag: " + std::to_string(tag) + "; pass 0 to " +
                                       std::to_string(bound) + (open ? ", or any_tag" : ""));
}

void check_data(const void* data, std::size_t bytes) {
  if (data == nullptr && bytes != 0) {
    throw Error(ErrorCode::argument, "data: null for " + std::to_string(bytes) +
                                         " bytes; pass the buffer of the message");
  }
}

void check_send(const messages::MessageEngine& engine, const void* data, std::size_t bytes, int to,
                int tag) {
  if (to < 0 || to >= engine.size()) [[unlikely]] {
    refuse_rank("to", to, engine.size(), false);
  }
  if (tag < 0 || tag > engine.reach().tag_bound) [[unlikely]] {
    refuse_tag(tag, engine.reach().tag_bound, false);
  }
  check_data(data, bytes);
}

void check_from(const messages::MessageEngine& engine, int from, int tag) {
  if (from < any_source || from >= engine.size()) [[unlikely]] {
    refuse_rank("from", from, engine.size(), true);
  }
  if (tag < any_tag || tag > engine.reach().tag_bound) [[unlikely]] {
    refuse_tag(tag, engine.reach().tag_bound, true);
  }
}

void check_receive(const messages::MessageEngine& engine, const void* data, std::size_t bytes,
                   int from, int tag) {
  check_from(engine, from, tag);
  check_data(data, bytes);
}

}  // namespace

const char* name(Mechanism mechanism) {
  constexpr const char* names[] = {"none", "inlined",  "slots", "receiver", "sender",
                                   "both", "pipeline", "mpi",   "threaded"};
  return names[static_cast<int>(mechanism)];
}

// ---- Channel

Channel::Channel(Communicator communicator, const ChannelOptions& options)
    : engine_(messages::MessageEngine::create(mpi::Comm{communicator.handle()}, options)) {}
Channel::~Channel() = default;
Channel::Channel(Channel&&) noexcept = default;
Channel& Channel::operator=(Channel&&) noexcept = default;

int Channel::rank() const noexcept { return engine_->rank(); }
int Channel::size() const noexcept { return engine_->size(); }
int Channel::tag_bound() const noexcept { return engine_->reach().tag_bound; }
bool Channel::is_near(int rank) const {
  if (rank < 0 || rank >= size()) refuse_rank("rank", rank, size(), false);
  return engine_->is_near(rank);
}
const std::string& Channel::reason() const noexcept { return engine_->reach().reason; }
std::size_t Channel::slot_bytes() const noexcept { return engine_->reach().slot_bytes; }
Mechanism Channel::last_mechanism() const noexcept { return engine_->last(); }

void Channel::send(const void* data, std::size_t bytes, int to, int tag) {
  check_send(*engine_, data, bytes, to, tag);
  engine_->send(data, bytes, to, tag);
}

MessageStatus Channel::receive(void* data, std::size_t bytes, int from, int tag) {
  check_receive(*engine_, data, bytes, from, tag);
  return engine_->receive(data, bytes, from, tag);
}

MessageStatus Channel::send_receive(const void* send, std::size_t send_bytes, int to, int send_tag,
                                    void* receive, std::size_t receive_bytes, int from,
                                    int receive_tag) {
  check_send(*engine_, send, send_bytes, to, send_tag);
  MessageRequest received = start_receive(receive, receive_bytes, from, receive_tag);
  engine_->send(send, send_bytes, to, send_tag);
  received.wait();
  return received.status();
}

MessageRequest Channel::start_send(const void* data, std::size_t bytes, int to, int tag) {
  check_send(*engine_, data, bytes, to, tag);
  return MessageRequest::send(engine_, data, bytes, to, tag);
}

MessageRequest Channel::start_receive(void* data, std::size_t bytes, int from, int tag) {
  check_receive(*engine_, data, bytes, from, tag);
  return MessageRequest::receive(engine_, data, bytes, from, tag);
}

PersistentMessage Channel::prepare_send(const void* data, std::size_t bytes, int to, int tag) {
  check_send(*engine_, data, bytes, to, tag);
  PersistentMessage message;
  message.engine_ = engine_;
  message.send_ = static_cast<const std::byte*>(data);
  message.is_send_ = true;
  message.bytes_ = bytes;
  message.rank_ = to;
  message.tag_ = tag;
  return message;
}

PersistentMessage Channel::prepare_receive(void* data, std::size_t bytes, int from, int tag) {
  check_receive(*engine_, data, bytes, from, tag);
  PersistentMessage message;
  message.engine_ = engine_;
  message.receive_ = static_cast<std::byte*>(data);
  message.bytes_ = bytes;
  message.rank_ = from;
  message.tag_ = tag;
  return message;
}

std::optional<MessageStatus> Channel::probe(int from, int tag) {
  check_from(*engine_, from, tag);
  return engine_->probe(from, tag);
}

// ---- MessageRequest

MessageRequest::MessageRequest(std::shared_ptr<messages::MessageEngine> engine,
                               messages::MessageOperation* operation)
    : engine_(std::move(engine)), operation_(operation) {}

MessageRequest::MessageRequest(MessageRequest&& other) noexcept
    : engine_(std::move(other.engine_)),
      operation_(std::exchange(other.operation_, nullptr)),
      status_(other.status_) {}

MessageRequest& MessageRequest::operator=(MessageRequest&& other) noexcept {
  if (this == &other) return *this;
  end();
  engine_ = std::move(other.engine_);
  operation_ = std::exchange(other.operation_, nullptr);
  status_ = other.status_;
  return *this;
}

MessageRequest::~MessageRequest() { end(); }

MessageRequest MessageRequest::send(const Engine& engine, const void* data, std::size_t bytes,
                                    int to, int tag) {
  messages::MessageOperation* operation = engine->start_send(data, bytes, to, tag);
  if (operation == nullptr) return MessageRequest(MessageStatus{to, tag, bytes});
  return {engine, operation};
}

MessageRequest MessageRequest::receive(const Engine& engine, void* data, std::size_t bytes,
                                       int from, int tag) {
  // A message that has come already needs no operation.
  MessageStatus status;
  if (engine->receive_now(data, bytes, from, tag, 1, status)) return MessageRequest(status);
  return {engine, engine->start_receive(data, bytes, from, tag)};
}

bool MessageRequest::test() {
  if (operation_ == nullptr) return true;
  if (!engine_->test(*operation_)) return false;
  finish();
  return true;
}

void MessageRequest::wait() {
  if (operation_ == nullptr) return;
  engine_->enter();
  if (!operation_->complete) engine_->wait(*operation_);
  finish();
}

bool MessageRequest::cancel() noexcept {
  if (operation_ == nullptr) return false;
  engine_->enter();
  if (!operation_->posted) return false;
  engine_->withdraw(*std::exchange(operation_, nullptr));
  engine_.reset();
  return true;
}

void MessageRequest::finish() {
  status_ = operation_->status;
  messages::MessageOperation& operation = *std::exchange(operation_, nullptr);
  const std::shared_ptr<messages::MessageEngine> engine = std::move(engine_);
  engine->finish(operation);
}

// Waits, or withdraws where an exception unwinds the stack or comes in the wait.
void MessageRequest::end() noexcept {
  if (operation_ == nullptr) return;
  try {
    engine_->enter();
    if (!unwinding_ && !operation_->complete) engine_->wait(*operation_);
  } catch (...) {  // told to whoever waits for the next message
  }
  engine_->withdraw(*operation_);
  operation_ = nullptr;
}

// ---- PersistentMessage

void PersistentMessage::start() {
  if (engine_ == nullptr) {
    throw Error(ErrorCode::argument,
                "message: empty; make it with prepare_send() or "
                "prepare_receive()");
  }
  if (!request_.test()) {
    throw Error(ErrorCode::argument,
                "message: started again while it is under way; wait for it first");
  }
  request_ = is_send_ ? MessageRequest::send(engine_, send_, bytes_, rank_, tag_)
                      : MessageRequest::receive(engine_, receive_, bytes_, rank_, tag_);
}

bool PersistentMessage::test() { return request_.test(); }
void PersistentMessage::wait() { request_.wait(); }

}  // namespace ropewalk
