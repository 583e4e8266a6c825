// Messages of one call between ranks of different nodes: several in flight at a time, in an order
// that both ends know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/nodes/nodes.hpp"

namespace ropewalk::collectives::nodes {

// Comes before all else from one rank to another in a call: what is called and with how much, as
// the ranks of a node compare it in their slots.
struct Header {
  std::uint64_t call;
  std::uint64_t count;
  std::uint64_t bytes = 0;  // of the message behind it, where the two have to agree on that
};
Header header_of(Kind kind, std::uint64_t count, std::uint32_t form = 0, std::uint32_t root = 0);
// Throws when the call of another rank is not ours.
void check_header(const Header& own, const Header& other, int other_rank);

// What is to be sent and received, piece by piece. The pieces of a pair of ranks are listed in the
// same order at both. So that no ranks wait for each other in a circle, all list their pieces by a
// number that both ends of a piece give it (a chunk, a distance between nodes), ascending.
class Traffic {
 public:
  // `depth`: sends in flight, and receives. `kept`: received pieces that the caller still needs
  // when it gets the next ones.
  Traffic(Nodes& nodes, const Header& header, std::size_t depth, std::size_t kept = 0);
  // Numbers of slots, see run(); of the pieces kept, some may come with a header.
  static constexpr std::size_t slots(std::size_t depth, std::size_t kept) {
    return depth + 2 * kept;
  }
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // Pieces of nothing are left out at both ends; they have a number all the same.
  void send(int peer, std::size_t bytes) { add(sends_, peer, bytes); }
  void receive(int peer, std::size_t bytes) { add(receives_, peer, bytes); }

  // Moves all pieces. Of the caller's `moves`:
  //   source(i, slot)    where piece i of the sends lies, null while it is not there yet; in order.
  //                      No two pieces in flight or kept have the same slot
  //   sink(i, slot)      where piece i of the receives goes, likewise
  //   received(i, slot)  it is there; in order
  //   work()             a bit of other work; false when there is none left
  template <class Moves>
  void run(Moves& moves) {
    nodes_.wait_until([&] { return step(moves); });
  }
  // One look at everything, for callers that begin, do something else, and then run() to the end.
  template <class Moves>
  bool step(Moves& moves);

 private:
  static constexpr std::size_t header_index = SIZE_MAX;
  struct Piece {
    int peer;
    std::size_t bytes;
    std::size_t index;  // the caller's; header_index for a header
  };
  struct Side {
    std::vector<Piece> pieces;
    std::vector<bool> met;  // ranks that a header goes to or comes from
    std::size_t listed = 0;
    std::size_t begun = 0;
    std::size_t ended = 0;
    std::vector<mpi::Request> requests;  // of pieces, by their number modulo the depth
    bool may_begin() const { return begun < pieces.size() && begun < ended + requests.size(); }
    bool complete() const { return ended == pieces.size(); }
    std::size_t slots = 1;
    std::size_t slot(std::size_t piece) const { return piece % slots; }
    mpi::Request& request(std::size_t piece) { return requests[piece % requests.size()]; }
  };
  void add(Side& side, int peer, std::size_t bytes);
  // The header before the next piece.
  Header expected(const Side& side, std::size_t piece) const {
    return {header_.call, header_.count, side.pieces[piece + 1].bytes};
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
    const Piece& piece = receives_.pieces[receives_.begun];
    const std::size_t slot = receives_.slot(receives_.begun);
    begin_receive(piece.index == header_index ? static_cast<void*>(&headers_[slot])
                                              : moves.sink(piece.index, slot));
  }
  while (receives_.ended < receives_.begun && mpi::test(receives_.request(receives_.ended))) {
    const Piece& piece = receives_.pieces[receives_.ended];
    const std::size_t slot = receives_.slot(receives_.ended);
    if (piece.index == header_index) {
      check_header(expected(receives_, receives_.ended), headers_[slot], piece.peer);
    } else {
      moves.received(piece.index, slot);
    }
    ++receives_.ended;
  }
  while (sends_.ended < sends_.begun && mpi::test(sends_.request(sends_.ended))) ++sends_.ended;
  while (sends_.may_begin()) {
    const Piece& piece = sends_.pieces[sends_.begun];
    const std::size_t slot = sends_.slot(sends_.begun);
    const void* data =
        piece.index == header_index ? fill_header(slot) : moves.source(piece.index, slot);
    if (data == nullptr) break;
    begin_send(data);
  }
  const bool works = moves.work();
  return sends_.complete() && receives_.complete() && !works;
}

}  // namespace ropewalk::collectives::nodes
