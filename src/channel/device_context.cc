// One context of the driver: its copies, its pinned memory, and allocations of other processes.
#include <cstring>

#include "channel/device_memory.hpp"

namespace ropewalk::channel {
namespace {

// Allocations of other processes that stay open; a program has few buffers that it sends.
constexpr std::size_t most_opened = 64;

// Makes a context the current one of this thread, and at the end the one before it.
class CurrentContext {
 public:
  CurrentContext(const cuda::Driver& driver, cuda::Context context)
      : driver_(driver), pushed_(driver.push_context(context)) {}
  ~CurrentContext() {
    cuda::Context popped = nullptr;
    if (pushed_ == cuda::success) driver_.pop_context(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  void require() const { cuda::require(driver_, "cuCtxPushCurrent", pushed_); }
  bool failed() const noexcept { return pushed_ != cuda::success; }

 private:
  const cuda::Driver& driver_;
  cuda::Result pushed_;
};

bool same(const cuda::IpcHandle& one, const cuda::IpcHandle& other) noexcept {
  return std::memcmp(one.reserved, other.reserved, sizeof one.reserved) == 0;
}

}  // namespace

// ---- DeviceContext

DeviceContext::DeviceContext(const cuda::Driver& driver, cuda::Context context,
                             cuda::Device primary)
    : driver_(driver), context_(context), primary_(primary) {}

// Errors are those of a process that ends, or were told before.
DeviceContext::~DeviceContext() {
  {
    const CurrentContext current(driver_, context_);
    while (!opened_.empty()) close(0);
    for (cuda::Event each : free_events_) driver_.event_destroy(each);
    for (cuda::Stream each : streams_) {
      if (each != nullptr) driver_.stream_destroy(each);
    }
  }
  if (primary_ >= 0) driver_.primary_release(primary_);
}

// One for each direction: devices have a copy engine for each.
void DeviceContext::create_streams() {
  for (cuda::Stream& each : streams_) {
    if (each != nullptr) continue;
    cuda::require(driver_, "cuStreamCreate",
                  driver_.stream_create(&each, cuda::stream_non_blocking));
  }
}

void DeviceContext::copy(void* to, const void* from, std::size_t bytes, CopyDirection direction) {
  if (bytes == 0) return;
  const CurrentContext current(driver_, context_);
  current.require();
  create_streams();
  cuda::Stream& way = stream(direction);
  cuda::require(driver_, "cuMemcpyAsync",
                driver_.copy(cuda::pointer_to(to), cuda::pointer_to(from), bytes, way));
  cuda::require(driver_, "cuStreamSynchronize", driver_.stream_synchronize(way));
}

bool DeviceContext::pin(void* memory, std::size_t bytes) noexcept {
  const CurrentContext current(driver_, context_);
  if (current.failed()) return false;
  return driver_.host_register(memory, bytes, cuda::register_portable) == cuda::success;
}

void DeviceContext::unpin(void* memory) noexcept {
  const CurrentContext current(driver_, context_);
  driver_.host_unregister(memory);
}

DeviceSource DeviceContext::describe(const void* buffer, std::size_t bytes) noexcept {
  DeviceSource source{};
  source.address = cuda::pointer_to(buffer);
  const CurrentContext current(driver_, context_);
  if (current.failed()) return source;
  cuda::DevicePointer base = 0;
  std::size_t length = 0;
  if (driver_.address_range(&base, &length, source.address) != cuda::success) return source;
  source.offset = source.address - base;
  if (source.offset + bytes > length) return source;
  source.is_exported = driver_.ipc_get(&source.handle, base) == cuda::success ? 1 : 0;
  return source;
}

// The driver gives each allocation another handle, also where it takes an address again. So a
// handle that is known leads to memory that is still there, and one that another handle has taken
// the place of leads nowhere.
const std::byte* DeviceContext::open(int place, const DeviceSource& source) {
  const std::uint64_t base = source.address - source.offset;
  for (std::size_t index = 0; index < opened_.size(); ++index) {
    const Opened& each = opened_[index];
    if (each.place != place || each.base != base) continue;
    if (same(each.handle, source.handle)) {
      return reinterpret_cast<const std::byte*>(each.seen + source.offset);
    }
    // What a copy may still read from stays open.
    if (under_way_ == 0) close(index--);
  }
  const CurrentContext current(driver_, context_);
  if (current.failed()) return nullptr;
  if (opened_.size() >= most_opened && under_way_ == 0) close(0);
  opened_.reserve(opened_.size() + 1);
  cuda::DevicePointer seen = 0;
  if (driver_.ipc_open(&seen, source.handle, cuda::ipc_enable_peer_access) != cuda::success) {
    return nullptr;
  }
  opened_.push_back({place, base, source.handle, seen});
  return reinterpret_cast<const std::byte*>(seen + source.offset);
}

void DeviceContext::close(std::size_t index) noexcept {
  const CurrentContext current(driver_, context_);
  driver_.ipc_close(opened_[index].seen);
  opened_.erase(opened_.begin() + static_cast<std::ptrdiff_t>(index));
}

cuda::Event DeviceContext::take_event() {
  if (!free_events_.empty()) {
    cuda::Event event = free_events_.back();
    free_events_.pop_back();
    return event;
  }
  cuda::Event event = nullptr;
  cuda::require(driver_, "cuEventCreate", driver_.event_create(&event, cuda::event_disable_timing));
  free_events_.reserve(++events_);  // so that ~DeviceCopies() never allocates
  return event;
}

// ---- DeviceCopies

void DeviceCopies::start(void* to, const void* from, std::size_t bytes) {
  const cuda::Driver& driver = context_.driver_;
  const CurrentContext current(driver, context_.context_);
  current.require();
  context_.create_streams();
  cuda::Event& event = events_[started_ % most];
  if (event == nullptr) event = context_.take_event();
  cuda::Stream& way = context_.stream(direction_);
  cuda::require(driver, "cuMemcpyAsync",
                driver.copy(cuda::pointer_to(to), cuda::pointer_to(from), bytes, way));
  // From here on the device may touch the buffers, whatever comes.
  ++started_;
  ++context_.under_way_;
  cuda::require(driver, "cuEventRecord", driver.event_record(event, way));
}

std::uint64_t DeviceCopies::completed() {
  if (completed_ == started_) return completed_;
  const cuda::Driver& driver = context_.driver_;
  const CurrentContext current(driver, context_.context_);
  current.require();
  while (completed_ != started_) {
    const cuda::Result result = driver.event_query(events_[completed_ % most]);
    if (result == cuda::not_ready) break;
    cuda::require(driver, "cuEventQuery", result);
    ++completed_;
    --context_.under_way_;
  }
  return completed_;
}

DeviceCopies::~DeviceCopies() {
  const cuda::Driver& driver = context_.driver_;
  const CurrentContext current(driver, context_.context_);
  if (completed_ != started_) driver.stream_synchronize(context_.stream(direction_));
  context_.under_way_ -= static_cast<unsigned>(started_ - completed_);
  for (cuda::Event event : events_) {
    if (event != nullptr) context_.free_events_.push_back(event);
  }
}

}  // namespace ropewalk::channel
