#include "without_mpi/text_exchange.hpp"

#include <cstring>

#include "os/clock.hpp"
#include "os/waiting.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::without_mpi {
namespace {

// Texts of any length, one behind the other.
std::string packed(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    const std::size_t bytes = text.size();
    all.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    all += text;
  }
  return all;
}

std::vector<std::string> unpacked(const std::string& all) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size();) {
    std::size_t bytes = 0;
    std::memcpy(&bytes, all.data() + at, sizeof bytes);
    texts.push_back(all.substr(at + sizeof bytes, bytes));
    at += sizeof bytes + bytes;
  }
  return texts;
}

}  // namespace

template <class Ready>
void TextExchange::wait(int rank, const Ready& ready) {
  const std::int64_t begun = os::steady_ns();
  os::Waiting wait(os::wait_for_messages);
  while (!wait.poll(ready)) {
    wait.pause();
    if (timeout_s_ == 0 || os::steady_ns() - begun < timeout_s_ * os::second_ns) continue;
    throw Error(ErrorCode::peer_dead, "rank " + std::to_string(rank) +
                                          " has not come to the making of a communicator within "
                                          "the timeout of " +
                                          std::to_string(timeout_s_) + " s");
  }
}

// Moves bytes in one direction, and waits until they are there or have gone.
void TextExchange::move(bool is_send, void* data, std::size_t bytes, int rank) {
  SocketTransfer transfer;
  transfer.is_send = is_send;
  transfer.data = static_cast<std::byte*>(data);
  transfer.bytes = bytes;
  transfer.peer = rank;
  is_send ? mailbox_->send(transfer) : mailbox_->receive(transfer);
  try {
    wait(rank, [&] { return mailbox_->test(transfer); });
  } catch (...) {
    mailbox_->close();  // it knows the transfer, which ends here
    throw;
  }
  if (!transfer.error.empty()) throw Error(ErrorCode::mpi, transfer.error);
}

// A rank that has gone ends a receive, but no probe: so the length goes first.
void TextExchange::send(const std::string& text, int to) {
  std::size_t bytes = text.size();
  move(true, &bytes, sizeof bytes, to);
  move(true, const_cast<char*>(text.data()), bytes, to);  // a send only reads it
}

std::string TextExchange::receive(int from) {
  std::size_t bytes = 0;
  move(false, &bytes, sizeof bytes, from);
  std::string text(bytes, '\0');
  move(false, text.data(), bytes, from);
  return text;
}

std::vector<std::string> TextExchange::share(const std::string& own) {
  if (rank_ != 0) {
    send(own, 0);
    return unpacked(receive(0));
  }
  std::vector<std::string> texts{own};
  for (int rank = 1; rank < size_; ++rank) texts.push_back(receive(rank));
  const std::string all = packed(texts);
  for (int rank = 1; rank < size_; ++rank) send(all, rank);
  return texts;
}

}  // namespace ropewalk::without_mpi
