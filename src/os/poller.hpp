// Which of many sockets can be read from or written to, at the price of one system call.
#pragma once

#include <span>

#include "os/file.hpp"

namespace ropewalk::os {

// Each socket has an owner, which is what find() tells of it. A socket leaves the poller when it is
// closed.
class Poller {
 public:
  Poller();  // throws Error(system) where the system has no descriptor left
  enum Wish : unsigned { nothing = 0, read = 1, write = 2 };
  // Throws Error(system) where the kernel refuses.
  void add(const Descriptor& socket, void* owner, unsigned wishes);
  void change(const Descriptor& socket, void* owner, unsigned wishes) noexcept;

  // Fills `owners` with those whose sockets are ready now, or have failed; returns how many.
  std::size_t find(std::span<void*> owners) const noexcept;

 private:
  Descriptor descriptor_;
};

}  // namespace ropewalk::os
