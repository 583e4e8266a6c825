// A registration trace is what a program asks of the memory of other ranks, as text: whose process,
// which address, how many bytes, a line each. Registration caches of other sizes and other orders
// of eviction are tried on it (ropewalk/registration.hpp).
//
// Written is what is attached or would be: each buffer that a call looks up in the registration
// cache and, where private memory is not attached, each that the kernel copies instead.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace ropewalk::channel {

class RegistrationTrace {
 public:
  // Writes into a new file. Throws Error(argument) where it cannot be written.
  explicit RegistrationTrace(const std::string& file);
  ~RegistrationTrace();
  RegistrationTrace(const RegistrationTrace&) = delete;
  RegistrationTrace& operator=(const RegistrationTrace&) = delete;

  void add(pid_t process, std::uint64_t address, std::size_t bytes) noexcept;

  // Begins the trace of this process, if ROPEWALK_REGISTRATION_TRACE asks for one; throws as the
  // constructor does.
  static void begin_of_process();
  // Adds to the trace of this process, where there is one.
  static void note(pid_t process, std::uint64_t address, std::size_t bytes) noexcept {
    // Pairs with the release of who began it.
    RegistrationTrace* trace = of_process_.load(std::memory_order_acquire);
    if (trace != nullptr) [[unlikely]] {
      trace->add(process, address, bytes);
    }
  }

 private:
  static std::atomic<RegistrationTrace*> of_process_;

  std::FILE* file_;
};

}  // namespace ropewalk::channel
