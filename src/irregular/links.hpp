// What connects this rank with one neighbor: lists of elements, and how they travel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "irregular/index_list.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/window.hpp"

namespace ropewalk::irregular {

// Ghosts get their owners' values, or owners what belongs to them of their ghosts.
enum class Way { to_ghosts, to_owners };

struct Lists {
  const IndexList& outgoing(Way way) const noexcept {
    return way == Way::to_ghosts ? send : receive;
  }
  const IndexList& incoming(Way way) const noexcept {
    return way == Way::to_ghosts ? receive : send;
  }
  std::size_t most_bytes() const noexcept {
    return send.bytes() > receive.bytes() ? send.bytes() : receive.bytes();
  }

  IndexList send;
  IndexList receive;
};

// A neighbor moves what belongs to it in an exchange, which has a number, from 1. All exchanges of
// an object count, whichever way they go.
class NeighborLink {
 public:
  explicit NeighborLink(Lists lists) : lists_(std::move(lists)) {}
  virtual ~NeighborLink() = default;
  NeighborLink(const NeighborLink&) = delete;
  NeighborLink& operator=(const NeighborLink&) = delete;

  const Lists& lists() const noexcept { return lists_; }
  virtual void start(const std::byte* array, Way, std::uint64_t exchange) = 0;
  // Whether all has come, and what was sent has left.
  virtual bool test(Way, std::uint64_t exchange) = 0;
  virtual void wait(Way, std::uint64_t exchange) = 0;
  // What has come, until the exchange after the next one starts.
  virtual const std::byte* arrived(std::uint64_t exchange) const noexcept = 0;

 private:
  Lists lists_;
};

// To this rank itself.
class OwnLink final : public NeighborLink {
 public:
  explicit OwnLink(Lists lists)
      : NeighborLink(std::move(lists)), packed_(this->lists().most_bytes()) {}
  void start(const std::byte* array, Way way, std::uint64_t /*exchange*/) override {
    lists().outgoing(way).gather(array, packed_.data());
  }
  bool test(Way, std::uint64_t) override { return true; }
  void wait(Way, std::uint64_t) override {}
  const std::byte* arrived(std::uint64_t) const noexcept override { return packed_.data(); }

 private:
  std::vector<std::byte> packed_;
};

// Two inboxes for each near neighbor lie in a window of the node's ranks. A rank gathers into that
// inbox of its neighbor which the number of the exchange says, and signals. It may write there
// again in the exchange after the next: the neighbor signals the next one when it starts it, after
// it has taken what had come in this one.
class NearLink final : public NeighborLink {
 public:
  struct Place {
    int peer = 0;                 // in the window
    std::size_t peer_offset = 0;  // of this rank's first inbox in the peer's memory
    std::size_t own_offset = 0;   // of the peer's first inbox here
  };
  // The second inbox lies so many bytes behind the first, on both sides.
  static std::size_t inbox_bytes(std::size_t bytes) noexcept {
    constexpr std::size_t line = 128;  // bytes: two cache lines, which processors fetch together
    return (bytes + line - 1) / line * line;
  }

  NearLink(Lists lists, Window& window, const Place& place)
      : NeighborLink(std::move(lists)), window_(window), place_(place) {}
  void start(const std::byte* array, Way way, std::uint64_t exchange) override {
    std::byte* to = window_.data(place_.peer) + place_.peer_offset + second(exchange);
    lists().outgoing(way).gather(array, to);
    window_.signal(place_.peer, window_.rank());
  }
  bool test(Way, std::uint64_t exchange) override {
    return window_.signals(place_.peer) >= exchange;
  }
  void wait(Way, std::uint64_t exchange) override { window_.wait_signal(exchange, place_.peer); }
  const std::byte* arrived(std::uint64_t exchange) const noexcept override {
    return window_.data() + place_.own_offset + second(exchange);
  }

 private:
  std::size_t second(std::uint64_t exchange) const noexcept {
    return exchange % 2 == 0 ? 0 : inbox_bytes(lists().most_bytes());
  }

  Window& window_;
  Place place_;
};

// One message each way.
class FarLink final : public NeighborLink {
 public:
  FarLink(Lists lists, Channel& channel, int peer)
      : NeighborLink(std::move(lists)),
        sent_(this->lists().most_bytes()),
        received_(this->lists().most_bytes()) {
    for (const Way way : {Way::to_ghosts, Way::to_owners}) {
      messages_[index(way)] = {
          channel.prepare_send(sent_.data(), this->lists().outgoing(way).bytes(), peer),
          channel.prepare_receive(received_.data(), this->lists().incoming(way).bytes(), peer)};
    }
  }
  void start(const std::byte* array, Way way, std::uint64_t /*exchange*/) override {
    lists().outgoing(way).gather(array, sent_.data());
    messages_[index(way)].receive.start();
    messages_[index(way)].send.start();
  }
  bool test(Way way, std::uint64_t) override {
    const bool has_come = messages_[index(way)].receive.test();
    return messages_[index(way)].send.test() && has_come;
  }
  void wait(Way way, std::uint64_t) override {
    messages_[index(way)].receive.wait();
    messages_[index(way)].send.wait();
  }
  const std::byte* arrived(std::uint64_t) const noexcept override { return received_.data(); }

 private:
  struct Messages {
    PersistentMessage send;
    PersistentMessage receive;
  };
  static std::size_t index(Way way) noexcept { return static_cast<std::size_t>(way); }

  Buffer<std::byte> sent_;
  Buffer<std::byte> received_;
  Messages messages_[2];
};

}  // namespace ropewalk::irregular
