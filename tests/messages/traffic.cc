#include "messages/traffic.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/memory.hpp"
#include "support/device.hpp"

namespace ropewalk::test {
namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t end) {
  return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
}

struct Sent {
  int from;
  int to;
  int tag;
  std::size_t bytes;
  std::uint64_t seed;
};

enum class Where : std::uint8_t { privately, in_arena, on_device };

// This is a buffer in private memory, in the arena or in memory of a device.
class Buffer {
 public:
  Buffer(std::size_t bytes, Where where) : bytes_(bytes) {
    switch (where) {
      case Where::in_arena:
        memory_ = static_cast<std::byte*>(Arena::process().allocate(bytes + 1, 64));
        return;
      case Where::on_device:
        device_ = std::make_unique<DeviceBytes>(bytes + 1);
        return;
      case Where::privately:
        private_ = std::make_unique<std::byte[]>(bytes + 1);
    }
  }
  ~Buffer() {
    if (memory_ != nullptr) Arena::process().deallocate(memory_);
  }
  Buffer(Buffer&& other) noexcept
      : bytes_(other.bytes_),
        memory_(std::exchange(other.memory_, nullptr)),
        private_(std::move(other.private_)),
        device_(std::move(other.device_)) {}
  std::byte* data() const {
    if (device_ != nullptr) return device_->data();
    return memory_ != nullptr ? memory_ : private_.get();
  }
  void put(const std::vector<std::byte>& from) const {
    if (device_ != nullptr) return device_->write(from.data(), from.size());
    if (!from.empty()) std::memcpy(data(), from.data(), from.size());
  }
  std::vector<std::byte> first(std::size_t bytes) const {
    std::vector<std::byte> copy(bytes);
    if (device_ != nullptr) {
      device_->read(copy.data(), bytes);
    } else if (bytes != 0) {
      std::memcpy(copy.data(), data(), bytes);
    }
    return copy;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
  std::unique_ptr<std::byte[]> private_;
  std::unique_ptr<DeviceBytes> device_;
};

std::vector<std::byte> bytes_of(const Sent& message) {
  std::vector<std::byte> data(message.bytes);
  Random random(message.seed);
  for (std::size_t at = 0; at < data.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(data.data() + at, &word, std::min(sizeof word, data.size() - at));
  }
  return data;
}

std::size_t random_length(Random& random, std::size_t longest) {
  switch (below(random, 4)) {
    case 0:
      return below(random, 110);
    case 1:
      return below(random, 10'000);
    case 2:
      return below(random, 70'000);
    default:
      return below(random, longest + 1);
  }
}

// Draws the messages of all ranks, in the order in which each sends. Tags are 0 to `bound`.
std::vector<Sent> random_messages(Random& random, int ranks, std::size_t longest, int bound) {
  std::vector<Sent> messages(below(random, 12U * static_cast<unsigned>(ranks)));
  const std::size_t tags = 1 + below(random, 4);
  const int apart = bound / 3;
  const std::size_t most = below(random, 3) == 0 ? 100 : longest;
  for (Sent& each : messages) {
    each = {static_cast<int>(below(random, static_cast<std::size_t>(ranks))),
            static_cast<int>(below(random, static_cast<std::size_t>(ranks))),
            apart * static_cast<int>(below(random, tags)), random_length(random, most), random()};
  }
  return messages;
}

// Which part of a receive is left open. All receives of a rank in a round are alike in this: so no
// receive takes a message that another one needs.
enum class Open : std::uint8_t { nothing, source, tag, both };

struct Receive {
  int from;
  int tag;
  Buffer buffer;
  MessageRequest request;
  const Sent* message = nullptr;  // that it got
};

class Round {
 public:
  Round(Channel& channel, Random& random, Random& own, const TrafficOptions& options)
      : channel_(channel),
        own_(own),
        devices_(options.devices),
        messages_(random_messages(random, channel.size(), options.longest, channel.tag_bound())) {}

  std::string run() {
    start_all();
    for (std::string problem : {finish(), find_messages(), overtaken()}) {
      if (!problem.empty()) return problem;
    }
    return {};
  }

 private:
  // Sends in their order, receives in a random one, mixed at random.
  void start_all() {
    std::vector<const Sent*> sends;
    std::vector<const Sent*> receives;
    for (const Sent& each : messages_) {
      if (each.from == channel_.rank()) sends.push_back(&each);
      if (each.to == channel_.rank()) receives.push_back(&each);
    }
    std::ranges::shuffle(receives, own_);
    const auto open = static_cast<Open>(below(own_, 4));
    receives_.reserve(receives.size());
    buffers_.reserve(sends.size());
    std::size_t sent = 0;
    while (sent < sends.size() || receives_.size() < receives.size()) {
      if (sent < sends.size() && (receives_.size() == receives.size() || below(own_, 2) == 0)) {
        send(*sends[sent++]);
      } else {
        receive(*receives[receives_.size()], open);
      }
      if (below(own_, 8) == 0) (void)channel_.probe(any_source, any_tag);
    }
  }
  void send(const Sent& message) {
    const Buffer& buffer = buffers_.emplace_back(message.bytes, somewhere());
    buffer.put(bytes_of(message));
    sends_.push_back(channel_.start_send(buffer.data(), message.bytes, message.to, message.tag));
  }
  void receive(const Sent& message, Open open) {
    // Any message that the receive may get fits.
    std::size_t longest = 0;
    for (const Sent& each : messages_) longest = std::max(longest, each.bytes);
    Receive& receive = receives_.emplace_back(
        open == Open::source || open == Open::both ? any_source : message.from,
        open == Open::tag || open == Open::both ? any_tag : message.tag,
        Buffer(longest, somewhere()));
    receive.request =
        channel_.start_receive(receive.buffer.data(), longest, receive.from, receive.tag);
  }
  Where somewhere() {
    if (devices_ && below(own_, 2) == 0) return Where::on_device;
    return below(own_, 2) == 0 ? Where::in_arena : Where::privately;
  }
  // Waits for all in a random order, some by tests.
  std::string finish() {
    std::vector<MessageRequest*> requests;
    for (MessageRequest& each : sends_) requests.push_back(&each);
    for (Receive& each : receives_) requests.push_back(&each.request);
    std::ranges::shuffle(requests, own_);
    for (MessageRequest* request : requests) {
      if (below(own_, 2) == 0) {
        while (!request->test()) {
        }
      }
      request->wait();
    }
    return {};
  }
  // Every message came once, whole, to a receive that matches it.
  std::string find_messages() {
    std::vector<bool> taken(messages_.size());
    for (Receive& receive : receives_) {
      const MessageStatus& status = receive.request.status();
      for (std::size_t i = 0; i < messages_.size() && receive.message == nullptr; ++i) {
        const Sent& sent = messages_[i];
        if (taken[i] || sent.to != channel_.rank() || sent.from != status.source ||
            sent.tag != status.tag || sent.bytes != status.bytes) {
          continue;
        }
        if (receive.buffer.first(sent.bytes) != bytes_of(sent)) continue;
        taken[i] = true;
        receive.message = &sent;
      }
      if (receive.message == nullptr) return describe(receive) + ": no such message was sent";
      if (!matches(receive, *receive.message)) return describe(receive) + ": does not match";
    }
    return {};
  }
  static bool matches(const Receive& receive, const Sent& sent) {
    return (receive.from == any_source || receive.from == sent.from) &&
           (receive.tag == any_tag || receive.tag == sent.tag);
  }
  // Where two messages of one rank match the same two receives, the first message goes to the first
  // receive.
  std::string overtaken() const {
    for (std::size_t first = 0; first < receives_.size(); ++first) {
      for (std::size_t second = first + 1; second < receives_.size(); ++second) {
        const Receive& before = receives_[first];
        const Receive& after = receives_[second];
        // Messages are in one array in the order in which each rank sends them. Those of
        // a few bytes may be alike.
        if (before.message->from != after.message->from || after.message >= before.message ||
            (after.message->bytes < 8 && before.message->bytes < 8)) {
          continue;
        }
        if (matches(before, *after.message)) return describe(before) + ": a message overtook";
      }
    }
    return {};
  }
  std::string describe(const Receive& receive) const {
    const MessageStatus& status = receive.request.status();
    return "rank " + std::to_string(channel_.rank()) + ": receive from " +
           std::to_string(receive.from) + " tag " + std::to_string(receive.tag) + " got " +
           std::to_string(status.bytes) + " bytes from " + std::to_string(status.source) + " tag " +
           std::to_string(status.tag) + " (" + name(channel_.last_mechanism()) + ")";
  }

  Channel& channel_;
  Random& own_;
  bool devices_;
  std::vector<Sent> messages_;
  std::vector<Buffer> buffers_;
  std::vector<MessageRequest> sends_;
  std::vector<Receive> receives_;
};

}  // namespace

std::string random_traffic(Channel& channel, const TrafficOptions& options) {
  Random shared(options.seed);
  Random own(options.seed * 1000 + static_cast<std::uint64_t>(channel.rank()));
  for (int round = 0; round < options.rounds; ++round) {
    std::string problem = Round(channel, shared, own, options).run();
    if (!problem.empty()) {
      return "seed " + std::to_string(options.seed) + ", round " + std::to_string(round) + ", " +
             problem;
    }
    // Receives that are open must not take messages of the next round.
    mpi::barrier(mpi::comm_world());
  }
  return {};
}

}  // namespace ropewalk::test
