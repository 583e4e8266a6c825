#include "node/failure_notices.hpp"

#include <algorithm>

namespace ropewalk::node {

void FailureNotices::add_ended(const ProcessId& id) {
  if (has_ended(id)) return;
  ended_.push_back(id);
  count_news();
}

void FailureNotices::add_broken(const BrokenCommunicator& notice) {
  if (broken(notice.communicator)) return;
  broken_.push_back(notice);
  count_news();
}

bool FailureNotices::has_ended(const ProcessId& id) const {
  return std::ranges::find(ended_, id) != ended_.end();
}

std::optional<BrokenCommunicator> FailureNotices::broken(std::uint64_t communicator) const {
  const auto found = std::ranges::find(broken_, communicator, &BrokenCommunicator::communicator);
  return found == broken_.end() ? std::nullopt : std::optional(*found);
}

bool FailureNotices::send(Connection& connection, const ProcessId& own) const {
  Frame frame;
  frame.sender = own;
  for (frame.kind = Frame::ended; connection.told_ended < ended_.size(); ++connection.told_ended) {
    frame.subject = ended_[connection.told_ended];
    if (!connection.send(frame)) return false;
  }
  frame.kind = Frame::broken;
  for (; connection.told_broken < broken_.size(); ++connection.told_broken) {
    const BrokenCommunicator& one = broken_[connection.told_broken];
    frame.subject = one.subject;
    frame.communicator = one.communicator;
    frame.seconds = one.seconds;
    if (!connection.send(frame)) return false;
  }
  return true;
}

}  // namespace ropewalk::node
