#include "channel/device_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "ropewalk/memory.hpp"
#include "settings/value.hpp"

namespace ropewalk::channel {

std::unique_ptr<DeviceMemory> DeviceMemory::create() {
  const cuda::Driver* driver = cuda::loaded_driver();
  if (driver == nullptr || settings::get(settings::Id::device_buffers).is("off")) return nullptr;
  return std::unique_ptr<DeviceMemory>(new DeviceMemory(*driver));
}

DeviceMemory::DeviceMemory(const cuda::Driver& driver) : driver_(driver), process_(getpid()) {}

DeviceMemory::~DeviceMemory() {
  if (getpid() != process_) {
    for (auto& context : contexts_) static_cast<void>(context.release());
    return;
  }
  for (const Pinned& each : pinned_) {
    if (each.is_locked) each.context->unpin(each.memory);
  }
}

// The driver answers for any address; a pointer that it does not know has no type. Its errors of
// the first kinds say that this process has no device memory (yet, or any more).
DeviceContext* DeviceMemory::context_of(const void* buffer) {
  if (Arena::process().contains(buffer, 1)) return nullptr;
  cuda::Context context = nullptr;
  unsigned type = 0;
  std::uint64_t managed = 0;  // cuda.h says no more of the value than that it is a boolean
  int ordinal = -1;
  int attributes[] = {cuda::attribute_context, cuda::attribute_memory_type,
                      cuda::attribute_is_managed, cuda::attribute_device_ordinal};
  void* values[] = {&context, &type, &managed, &ordinal};
  const cuda::Result result = driver_.pointer_attributes(std::size(attributes), attributes, values,
                                                         cuda::pointer_to(buffer));
  for (const cuda::Result none :
       {cuda::invalid_value, cuda::not_initialized, cuda::deinitialized, cuda::invalid_context}) {
    if (result == none) return nullptr;
  }
  cuda::require(driver_, "cuPointerGetAttributes", result);
  // The host could touch managed memory, but neither the kernel nor XPMEM copies it.
  if (type != cuda::memory_of_device && managed == 0) return nullptr;
  // Memory of a pool belongs to a device and to none of its contexts.
  return context != nullptr ? &this->context(context) : &primary_context(ordinal);
}

DeviceContext& DeviceMemory::context(cuda::Context context) {
  for (const auto& each : contexts_) {
    if (each->is(context)) return *each;
  }
  contexts_.push_back(std::make_unique<DeviceContext>(driver_, context, -1));
  return *contexts_.back();
}

DeviceContext& DeviceMemory::primary_context(int ordinal) {
  cuda::Device device = 0;
  cuda::require(driver_, "cuDeviceGet", driver_.device_get(&device, ordinal));
  for (const auto& each : contexts_) {
    if (each->is_primary_of(device)) return *each;
  }
  cuda::Context context = nullptr;
  cuda::require(driver_, "cuDevicePrimaryCtxRetain", driver_.primary_retain(&context, device));
  contexts_.push_back(std::make_unique<DeviceContext>(driver_, context, device));
  return *contexts_.back();
}

void DeviceMemory::pin(DeviceContext& context, void* memory, std::size_t bytes) {
  const auto is_known = [&](const Pinned& each) { return each.memory == memory; };
  if (std::ranges::any_of(pinned_, is_known)) return;
  pinned_.push_back({&context, memory, context.pin(memory, bytes)});
}

bool DeviceMemory::is_copying() const noexcept {
  return std::ranges::any_of(contexts_, [](const auto& each) { return each->under_way() != 0; });
}

}  // namespace ropewalk::channel
