#include "os/fork.hpp"

#include <pthread.h>

#include <atomic>

namespace ropewalk::os {
namespace {

std::atomic<unsigned> generation{1};

}  // namespace

unsigned fork_generation() noexcept {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
  return generation.load(std::memory_order_relaxed);
}

}  // namespace ropewalk::os
