// A socket that a child of fork does not keep: while a copy of it is open anywhere, the other side
// does not learn that this process has ended.
#pragma once

#include "os/file.hpp"
#include "os/fork.hpp"

namespace ropewalk::without_mpi {

class Socket {
 public:
  Socket() = default;
  explicit Socket(os::Descriptor descriptor);
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept = default;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  const os::Descriptor& get() const noexcept { return descriptor_; }
  explicit operator bool() const noexcept { return static_cast<bool>(descriptor_); }
  void close() noexcept;

 private:
  os::Descriptor descriptor_;
  os::ForkCheck fork_;
};

}  // namespace ropewalk::without_mpi
