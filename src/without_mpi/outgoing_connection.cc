#include "without_mpi/outgoing_connection.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <span>

#include "os/network.hpp"

namespace ropewalk::without_mpi {
namespace {

// A system call takes so many pieces, two for each message.
constexpr std::size_t most_pieces = 16;

iovec piece(const void* data, std::size_t bytes) {
  return {const_cast<void*>(data), bytes};  // the kernel only reads it
}

}  // namespace

void OutgoingConnection::push(SocketTransfer& transfer) {
  if (!failure_.empty()) {
    transfer.error = failure_;
    transfer.over = true;
    return;
  }
  queue_.push_back({{.tag = transfer.tag, .bytes = transfer.bytes}, &transfer});
}

bool OutgoingConnection::withdraw(const SocketTransfer& transfer) {
  const auto found = std::ranges::find(queue_, &transfer, &Item::transfer);
  if (found == queue_.end() || found->sent > 0) return false;
  queue_.erase(found);
  return true;
}

// Lists what is to go out next, in order, and returns how many pieces there are.
std::size_t OutgoingConnection::gather(iovec* pieces) const {
  std::size_t count = 0;
  for (const Item& item : queue_) {
    if (count + 2 > most_pieces) break;
    const auto* envelope = reinterpret_cast<const std::byte*>(&item.envelope);
    if (item.sent < sizeof item.envelope) {
      pieces[count++] = piece(envelope + item.sent, sizeof item.envelope - item.sent);
    }
    const std::size_t sent = item.sent - std::min(item.sent, sizeof item.envelope);
    if (sent < item.transfer->bytes) {
      pieces[count++] = piece(item.transfer->data + sent, item.transfer->bytes - sent);
    }
  }
  return count;
}

void OutgoingConnection::take(std::size_t bytes) {
  while (!queue_.empty()) {
    Item& item = queue_.front();
    const std::size_t all = sizeof item.envelope + item.transfer->bytes;
    const std::size_t more = std::min(bytes, all - item.sent);
    item.sent += more;
    bytes -= more;
    if (item.sent < all) return;
    item.transfer->over = true;
    queue_.pop_front();
  }
}

void OutgoingConnection::flush() {
  std::size_t sent = 0;
  while (!idle() && sent < bytes_per_turn) {
    std::array<iovec, most_pieces> pieces;
    const std::size_t count = gather(pieces.data());
    const os::Moved moved = os::send_some(socket(), std::span(pieces.data(), count));
    if (moved.ended) return fail(os::error_text(moved.error));
    if (moved.bytes == 0) return;
    take(moved.bytes);
    sent += moved.bytes;
  }
}

void OutgoingConnection::fail(const std::string& why) {
  failure_ = why;
  socket_.close();
  for (const Item& item : queue_) {
    item.transfer->error = why;
    item.transfer->over = true;
  }
  queue_.clear();
}

}  // namespace ropewalk::without_mpi
