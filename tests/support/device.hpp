// Memory of devices in tests: of the fake driver (fake_cuda/), which a process loads when it first
// needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ropewalk::test {

// Loads the fake driver and makes the primary context of a device the calling thread's current one.
// Throws std::runtime_error where that fails.
void use_device(int device = 0);
// Whether the process has loaded the fake driver.
bool has_fake_driver();

// What the fake driver is asked for; it has been loaded.
void fail_call(const std::string& function, unsigned call, int result);  // 0: every call
void fail_no_more();
unsigned calls_of(const std::string& function);
unsigned calls_of_driver();
// Streams, events, pinned and opened memory that are left.
int left_in_driver();
// The current context of this thread.
const void* current_context();

enum class DeviceKind : std::uint8_t { usual, of_pool, managed };

// A buffer in memory of the calling thread's device.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes, DeviceKind kind = DeviceKind::usual);
  ~DeviceBytes();
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }
  void write(const void* from, std::size_t bytes) const;
  void read(void* to, std::size_t bytes) const;

 private:
  std::uint64_t address_ = 0;
};

}  // namespace ropewalk::test
