// Parts of any datatype on their way to ranks of other nodes, and from there, in one call.
//
// What one rank sends to another goes in one message behind its header where it is short. Longer
// parts follow a header one by one; those without gaps are sent from where they lie, and received
// where they belong.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/nodes/nodes.hpp"
#include "collectives/nodes/traffic.hpp"
#include "collectives/pattern.hpp"

namespace ropewalk::collectives::nodes {

class TypedMessages {
 public:
  // `depth`: as Traffic has it. `overwritten`: parts are received where others are sent from.
  TypedMessages(Nodes& nodes, const Header& header, std::size_t depth, bool overwritten);

  // All parts between two ranks are listed one after the other, and in the same order by both.
  // The pairs are listed as Traffic wants it.
  void send(int peer, const TypedPart& part) { list(sends_, peer, part); }
  void receive(int peer, const TypedPart& part) { list(receives_, peer, part); }

  // Takes scratch memory, which is kept to the end of the call. Then the messages are on their way.
  void begin();
  void advance() { (void)traffic_.step(*this); }
  void finish() { traffic_.run(*this); }

  // ---- for Traffic

  const void* source(std::size_t number, std::size_t slot);
  void* sink(std::size_t number, std::size_t slot);
  void received(std::size_t number, std::size_t slot);
  static bool work() { return false; }

 private:
  struct Listed {
    int peer;
    const TypedPart* part;
  };
  struct Message {
    std::size_t first;     // part
    std::size_t end;       // behind its last
    std::size_t bytes;     // of data
    bool with_header;      // and all that this pair sends
    const std::byte* run;  // the data as they lie; null: they are packed
    std::byte* packed = nullptr;

    std::size_t packed_bytes() const {
      return run != nullptr ? 0 : bytes + (with_header ? sizeof(Header) : 0);
    }
  };
  struct Side {
    std::vector<Listed> listed;
    std::vector<Message> messages;
  };
  static void list(Side& side, int peer, const TypedPart& part) {
    if (part.bytes() > 0) side.listed.push_back({peer, &part});
  }
  static void make_messages(Side& side, bool straight);
  void pack(const Message& message) const;
  Header header_of(const Message& message) const {
    return {header_.call, header_.count, message.bytes};
  }

  Nodes& nodes_;
  Header header_;
  bool overwritten_;
  Side sends_;
  Side receives_;
  Traffic traffic_;
};

}  // namespace ropewalk::collectives::nodes
