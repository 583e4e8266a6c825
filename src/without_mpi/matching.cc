#include "without_mpi/matching.hpp"

#include <algorithm>

namespace ropewalk::without_mpi {

SocketTransfer* Matching::take_posted(int source, int tag) {
  const auto found = std::ranges::find_if(posted_, [&](const SocketTransfer* one) {
    return matches(one->peer, one->tag, source, tag);
  });
  if (found == posted_.end()) return nullptr;
  SocketTransfer* const receive = *found;
  posted_.erase(found);
  return receive;
}

bool Matching::awaits(int source) const {
  return std::ranges::any_of(posted_, [&](const SocketTransfer* one) {
    return one->peer == any_source || one->peer == source;
  });
}

bool Matching::withdraw(const SocketTransfer& receive) {
  return std::erase(posted_, const_cast<SocketTransfer*>(&receive)) > 0;
}

void Matching::fail_from(int source, const std::string& why) {
  std::erase_if(posted_, [&](SocketTransfer* one) {
    if (one->peer != source) return false;
    end(*one, why);
    return true;
  });
}

Letter* Matching::find(int source, int tag) {
  const auto found = std::ranges::find_if(letters_, [&](const Letter& letter) {
    return matches(source, tag, letter.source, letter.tag);
  });
  return found == letters_.end() ? nullptr : &*found;
}

void Matching::remove(const Letter& letter) {
  letters_.remove_if([&](const Letter& one) { return &one == &letter; });
}

void Matching::clear() noexcept {
  posted_.clear();
  letters_.clear();
}

void meet(SocketTransfer& receive, const Letter& letter) {
  receive.peer = letter.source;
  receive.tag = letter.tag;
  receive.received_bytes = letter.bytes;
  if (letter.bytes <= receive.bytes) return;
  receive.error = "message of " + std::to_string(letter.bytes) + " bytes from rank " +
                  std::to_string(letter.source) + ", expected at most " +
                  std::to_string(receive.bytes);
}

void end(SocketTransfer& transfer, const std::string& error) {
  transfer.error = error;
  transfer.over = true;
}

}  // namespace ropewalk::without_mpi
