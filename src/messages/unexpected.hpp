// Messages that have come before their receive: in the order of their senders, by tag.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "messages/board.hpp"
#include "messages/posted.hpp"

namespace ropewalk::messages {

struct UnexpectedMessage {
  int tag = 0;
  std::size_t bytes = 0;
  Carriage carriage = Carriage::cell;
  std::unique_ptr<std::byte[]> data;  // of a message that is not offered
  Offer offer{};                      // of one that is
};

class Unexpected {
 public:
  explicit Unexpected(int ranks) : from_(static_cast<std::size_t>(ranks)) {}

  bool empty() const noexcept { return count_ == 0; }
  void add(int source, UnexpectedMessage message) {
    from_[static_cast<std::size_t>(source)].push_back(std::move(message));
    ++count_;
  }
  // This is the first message that a receive from `source` with this tag takes. Where any source
  // will do, ranks take turns.
  struct Found {
    int source;
    std::size_t index;
  };
  std::optional<Found> find(int source, int tag) const {
    if (count_ == 0) return {};
    if (source != any_source) return find_from(source, tag);
    const int ranks = static_cast<int>(from_.size());
    for (int step = 1; step <= ranks; ++step) {
      if (const auto found = find_from((last_ + step) % ranks, tag)) return found;
    }
    return {};
  }
  const UnexpectedMessage& at(Found found) const { return list_of(found.source)[found.index]; }
  UnexpectedMessage take(Found found) {
    auto& list = from_[static_cast<std::size_t>(found.source)];
    UnexpectedMessage message = std::move(list[found.index]);
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(found.index));
    --count_;
    last_ = found.source;
    return message;
  }
  // Undoes take(), before anything else is added or taken.
  void put_back(Found found, UnexpectedMessage message) {
    auto& list = from_[static_cast<std::size_t>(found.source)];
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(found.index), std::move(message));
    ++count_;
  }

 private:
  const std::deque<UnexpectedMessage>& list_of(int source) const {
    return from_[static_cast<std::size_t>(source)];
  }
  std::optional<Found> find_from(int source, int tag) const {
    const auto& list = list_of(source);
    for (std::size_t index = 0; index < list.size(); ++index) {
      if (tag == any_tag || list[index].tag == tag) return Found{source, index};
    }
    return {};
  }

  std::vector<std::deque<UnexpectedMessage>> from_;  // by rank
  std::size_t count_ = 0;
  int last_ = 0;  // rank whose message was taken last
};

}  // namespace ropewalk::messages
