// How ranks that have connections bring texts together: each sends its own to rank 0, which sends
// all of them to each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "without_mpi/mailbox.hpp"

namespace ropewalk::without_mpi {

class TextExchange {
 public:
  // `mailbox` carries nothing else. A rank that waits longer than `timeout_s` gives up; 0: never.
  TextExchange(std::shared_ptr<Mailbox> mailbox, int rank, int size, int timeout_s)
      : mailbox_(std::move(mailbox)), rank_(rank), size_(size), timeout_s_(timeout_s) {}

  // Returns the texts of all ranks. Throws Error(mpi), which names the rank that has not come.
  std::vector<std::string> share(const std::string& own);

 private:
  void move(bool is_send, void* data, std::size_t bytes, int rank);
  void send(const std::string& text, int to);
  std::string receive(int from);
  template <class Ready>
  void wait(int rank, const Ready& ready);

  std::shared_ptr<Mailbox> mailbox_;
  int rank_;
  int size_;
  int timeout_s_;
};

}  // namespace ropewalk::without_mpi
