// MPI's matching of messages with receives, by source and tag, in the order of both.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "without_mpi/socket_transfer.hpp"

namespace ropewalk::without_mpi {

// A message that has come before a receive for it, or whose envelope has.
struct Letter {
  int source;
  int tag;
  std::size_t bytes;
  std::unique_ptr<std::byte[]> data;  // null while the message waits in its connection
  bool whole = false;
};

class Matching {
 public:
  // ---- receives that no message has met
  bool has_posted() const noexcept { return !posted_.empty(); }
  void post(SocketTransfer& receive) { posted_.push_back(&receive); }
  // Returns the first that matches, which is not posted any more, or null.
  SocketTransfer* take_posted(int source, int tag);
  // Whether a message of this source may be waited for.
  bool awaits(int source) const;
  bool withdraw(const SocketTransfer&);  // false where it is not posted
  // Ends those which only this source could meet.
  void fail_from(int source, const std::string& why);

  // ---- messages that no receive has met
  Letter& add(Letter letter) { return letters_.emplace_back(std::move(letter)); }
  Letter* find(int source, int tag);  // the first that matches, or null
  void remove(const Letter&);

  void clear() noexcept;

 private:
  std::vector<SocketTransfer*> posted_;  // in their order
  std::list<Letter> letters_;            // in the order in which their envelopes came
};

// A receive has met its message, whatever of that has come.
void meet(SocketTransfer& receive, const Letter&);
void end(SocketTransfer&, const std::string& error);

}  // namespace ropewalk::without_mpi
