// Memory of CUDA devices: whether a buffer is a device's, and copies to and from it by the device's
// copy engines.
//
// Each call is made in the context that the buffer belongs to, and leaves the thread's current
// context as it was. Copies go through streams of their own, which wait for no other stream: the
// caller's work on a buffer has ended before the buffer comes here. Every error of the driver is an
// Error that names the call and the driver's error, unless the function says otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "channel/cuda_driver.hpp"

namespace ropewalk::channel {

enum class CopyDirection : std::uint8_t { to_host, to_device };

// Says to another rank where a buffer in device memory lies.
struct DeviceSource {
  std::uint64_t address;      // in the process of its rank
  std::uint64_t offset;       // behind the beginning of its allocation
  std::uint32_t is_exported;  // 1: other processes open the allocation by the handle
  cuda::IpcHandle handle;
};

// One context of the driver, of which this process has buffers. Used by one thread at a time.
class DeviceContext {
 public:
  // `primary`: the device whose primary context it is and which has been retained; -1: another's.
  DeviceContext(const cuda::Driver&, cuda::Context, cuda::Device primary);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  bool is(cuda::Context context) const noexcept { return context_ == context; }
  bool is_primary_of(cuda::Device device) const noexcept { return primary_ == device; }

  // Copies, and returns when that is done.
  void copy(void* to, const void* from, std::size_t bytes, CopyDirection);

  // Describes a buffer of this context. That the driver does not export its memory is no error.
  DeviceSource describe(const void* buffer, std::size_t bytes) noexcept;
  // Returns where a buffer of another process, the rank at `place`, is seen here; null where the
  // driver does not open it. It stays open, and is found again, for later messages.
  const std::byte* open(int place, const DeviceSource&);

  // Locks pages of the host, so that copies from and to them need no second copy of the driver's.
  // Memory that cannot be locked is copied all the same. Not for memory that is locked already.
  bool pin(void* memory, std::size_t bytes) noexcept;
  void unpin(void* memory) noexcept;

  // Copies that have been started by DeviceCopies and are not complete.
  unsigned under_way() const noexcept { return under_way_; }

 private:
  friend class DeviceCopies;
  struct Opened {
    int place;
    std::uint64_t base;  // in the process of the rank
    cuda::IpcHandle handle;
    cuda::DevicePointer seen;
  };
  void create_streams();
  cuda::Stream& stream(CopyDirection direction) noexcept {
    return streams_[static_cast<std::size_t>(direction)];
  }
  cuda::Event take_event();
  void close(std::size_t index) noexcept;

  const cuda::Driver& driver_;
  cuda::Context context_;
  cuda::Device primary_;
  std::array<cuda::Stream, 2> streams_{};  // by direction
  std::vector<cuda::Event> free_events_;
  std::size_t events_ = 0;      // all there are
  std::vector<Opened> opened_;  // the oldest first
  unsigned under_way_ = 0;
};

// The copies of one message, which end in the order in which they were started.
class DeviceCopies {
 public:
  static constexpr unsigned most = 4;  // under way

  DeviceCopies(DeviceContext& context, CopyDirection direction) noexcept
      : context_(context), direction_(direction) {}
  // Waits: afterwards the device touches no buffer of the message.
  ~DeviceCopies();
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;

  // Fewer than `most` are under way.
  void start(void* to, const void* from, std::size_t bytes);
  // Returns how many are complete; does not wait.
  std::uint64_t completed();
  std::uint64_t started() const noexcept { return started_; }

 private:
  DeviceContext& context_;
  CopyDirection direction_;
  std::array<cuda::Event, most> events_{};  // of copy n: n modulo most
  std::uint64_t started_ = 0;
  std::uint64_t completed_ = 0;
};

// The device memory of one channel. Used by one thread at a time.
class DeviceMemory {
 public:
  // Returns null where no buffer can be a device's: this process has not loaded the driver, or
  // ROPEWALK_DEVICE_BUFFERS is `off`.
  static std::unique_ptr<DeviceMemory> create();
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Returns the context of a buffer; null for memory of the host.
  DeviceContext* context_of(const void* buffer);
  // Pins memory until this ends, once. A failure is none: see DeviceContext::pin().
  void pin(DeviceContext&, void* memory, std::size_t bytes);
  // Whether a copy is under way.
  bool is_copying() const noexcept;

 private:
  struct Pinned {
    DeviceContext* context;
    void* memory;
    bool is_locked;
  };
  explicit DeviceMemory(const cuda::Driver& driver);
  DeviceContext& context(cuda::Context);
  DeviceContext& primary_context(int ordinal);

  const cuda::Driver& driver_;
  int process_;  // a child of fork() has no device
  std::vector<std::unique_ptr<DeviceContext>> contexts_;
  std::vector<Pinned> pinned_;
};

}  // namespace ropewalk::channel
