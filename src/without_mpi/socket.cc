#include "without_mpi/socket.hpp"

#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <utility>

namespace ropewalk::without_mpi {
namespace {

// All open sockets of this process. It is never destroyed, since sockets may be closed after static
// objects are gone.
struct OpenSockets {
  std::mutex mutex;
  std::set<int> numbers;
};

OpenSockets& open_sockets();

void lock() { open_sockets().mutex.lock(); }
void unlock() { open_sockets().mutex.unlock(); }

void close_in_child() {
  OpenSockets& open = open_sockets();
  for (const int number : open.numbers) ::close(number);
  open.numbers.clear();
  unlock();
}

OpenSockets& open_sockets() {
  static OpenSockets* const made = [] {
    pthread_atfork(&lock, &unlock, &close_in_child);
    return new OpenSockets;
  }();
  return *made;
}

}  // namespace

Socket::Socket(os::Descriptor descriptor) : descriptor_(std::move(descriptor)) {
  if (!descriptor_) return;
  OpenSockets& open = open_sockets();
  const std::lock_guard held(open.mutex);
  open.numbers.insert(descriptor_.get());
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this == &other) return *this;
  close();
  descriptor_ = std::move(other.descriptor_);
  fork_ = other.fork_;
  return *this;
}

void Socket::close() noexcept {
  if (!descriptor_) return;
  if (!fork_.same_process()) {  // the number is closed, and may be another file's by now
    static_cast<void>(descriptor_.release());
    return;
  }
  OpenSockets& open = open_sockets();
  const std::lock_guard held(open.mutex);
  open.numbers.erase(descriptor_.get());
  descriptor_.reset();
}

}  // namespace ropewalk::without_mpi
