// Receives of this rank that have no message yet, in the order they were started: the first that
// matches a message gets it.
#pragma once

#include <vector>

#include "messages/operation.hpp"

namespace ropewalk::messages {

constexpr bool matches(int wanted_source, int wanted_tag, int source, int tag) noexcept {
  return (wanted_source == any_source || wanted_source == source) &&
         (wanted_tag == any_tag || wanted_tag == tag);
}

class Posted {
 public:
  explicit Posted(int ranks) : from_(static_cast<std::size_t>(ranks)) {}

  bool empty() const noexcept { return list_.empty(); }
  // Whether a receive may take a message of this rank.
  bool wants(int source) const noexcept {
    return from_any_ != 0 || from_[static_cast<std::size_t>(source)] != 0;
  }
  MessageOperation* first() const noexcept { return list_.first(); }
  MessageOperation* match(int source, int tag) const noexcept {
    for (MessageOperation* each = list_.first(); each != nullptr; each = each->next) {
      if (matches(each->peer, each->tag, source, tag)) return each;
    }
    return nullptr;
  }
  void add(MessageOperation& operation) noexcept {
    list_.add(operation);
    operation.posted = true;
    ++count_of(operation);
  }
  void remove(MessageOperation& operation) noexcept {
    list_.remove(operation);
    operation.posted = false;
    --count_of(operation);
  }

 private:
  int& count_of(const MessageOperation& operation) noexcept {
    return operation.peer == any_source ? from_any_
                                        : from_[static_cast<std::size_t>(operation.peer)];
  }

  OperationList list_;
  std::vector<int> from_;  // receives that name a rank, by rank
  int from_any_ = 0;
};

}  // namespace ropewalk::messages
