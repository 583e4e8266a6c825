// Messages of one call between ranks of different nodes: several in flight at a time, in an order
// that both ends know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/nodes/nodes.hpp"

namespace ropewalk::collectives::nodes {

// What is to be sent and received, message by message. Both ranks of a pair list the messages
// between them in the same order. So that no ranks wait for each other in a circle, all list their
// messages by a number that sender and receiver give alike (a chunk, a distance between nodes),
// ascending.
class Traffic {
 public:
  // `depth`: sends in flight, and receives. `kept`: received messages that the caller still needs
  // when it gets the next ones.
  Traffic(Nodes& nodes, const Header& header, std::size_t depth, std::size_t kept = 0);
  // Numbers of slots, see run(); of the messages kept, some may come with a header.
  static constexpr std::size_t slots(std::size_t depth, std::size_t kept) {
    return depth + 2 * kept;
  }
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // Empty messages are left out on both sides; they have a number all the same.
  void send(int peer, std::size_t bytes) { add(sends_, peer, bytes); }
  void receive(int peer, std::size_t bytes) { add(receives_, peer, bytes); }
  // The only message of a pair, which begins with its header: the caller writes and checks it.
  void send_whole(int peer, std::size_t bytes) { add_whole(sends_, peer, bytes); }
  void receive_whole(int peer, std::size_t bytes) { add_whole(receives_, peer, bytes); }

  // Moves all messages. Of the caller's `moves`:
  //   source(i, slot)    where message i of the sends lies, null while it is not there yet; in
  //                      order. No two messages in flight or kept have the same slot
  //   sink(i, slot)      where message i of the receives goes, likewise
  //   received(i, slot)  it is there; in order
  //   work()             a bit of other work; false when there is none left
  template <class Moves>
  void run(Moves& moves) {
    nodes_.waits().until([&] { return step(moves); });
  }
  // Advances everything once. It is for callers that begin, do something else, and then run() to
  // the end.
  template <class Moves>
  bool step(Moves& moves);

 private:
  static constexpr std::size_t header_index = SIZE_MAX;
  struct ListedMessage {
    int peer;
    std::size_t bytes;
    std::size_t index;  // the caller's; header_index for a header
  };
  struct Side {
    std::vector<ListedMessage> messages;
    std::vector<bool> met;  // ranks that a header goes to or comes from
    std::size_t listed = 0;
    std::size_t begun = 0;
    std::size_t ended = 0;
    std::vector<mpi::Request> requests;  // of messages, by their number modulo the depth
    bool may_begin() const { return begun < messages.size() && begun < ended + requests.size(); }
    bool complete() const { return ended == messages.size(); }
    std::size_t slots = 1;
    std::size_t slot(std::size_t message) const { return message % slots; }
    mpi::Request& request(std::size_t message) { return requests[message % requests.size()]; }
  };
  void add(Side& side, int peer, std::size_t bytes);
  static void add_whole(Side& side, int peer, std::size_t bytes) {
    side.messages.push_back({peer, bytes, side.listed++});
  }
  // Returns the header before the next message.
  Header expected(const Side& side, std::size_t message) const {
    return {header_.call, header_.count, side.messages[message + 1].bytes};
  }
  const void* fill_header(std::size_t slot) {
    own_headers_[slot] = expected(sends_, sends_.begun);
    return &own_headers_[slot];
  }
  void begin_send(const void* data);
  void begin_receive(void* data);

  Nodes& nodes_;
  Header header_;
  std::vector<Header> own_headers_;  // sent, by slot
  std::vector<Header> headers_;      // received
  Side sends_;
  Side receives_;
};

template <class Moves>
bool Traffic::step(Moves& moves) {
  while (receives_.may_begin()) {
    const ListedMessage& message = receives_.messages[receives_.begun];
    const std::size_t slot = receives_.slot(receives_.begun);
    begin_receive(message.index == header_index ? static_cast<void*>(&headers_[slot])
                                                : moves.sink(message.index, slot));
  }
  while (receives_.ended < receives_.begun && mpi::test(receives_.request(receives_.ended))) {
    const ListedMessage& message = receives_.messages[receives_.ended];
    const std::size_t slot = receives_.slot(receives_.ended);
    if (message.index == header_index) {
      check_header(expected(receives_, receives_.ended), headers_[slot], message.peer);
    } else {
      moves.received(message.index, slot);
    }
    ++receives_.ended;
  }
  while (sends_.ended < sends_.begun && mpi::test(sends_.request(sends_.ended))) ++sends_.ended;
  while (sends_.may_begin()) {
    const ListedMessage& message = sends_.messages[sends_.begun];
    const std::size_t slot = sends_.slot(sends_.begun);
    const void* data =
        message.index == header_index ? fill_header(slot) : moves.source(message.index, slot);
    if (data == nullptr) break;
    begin_send(data);
  }
  const bool works = moves.work();
  return sends_.complete() && receives_.complete() && !works;
}

}  // namespace ropewalk::collectives::nodes
