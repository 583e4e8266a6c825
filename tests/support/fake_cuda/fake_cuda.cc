// A library that stands for CUDA's driver, libcuda.so.1, where there is no device. It has the
// functions that ropewalk and the tests call, and is strict where the driver may be:
// - memory of a device is an address without access; the bytes are behind a second mapping, in a
//   memfd, which other processes open by an IPC handle, but not the process itself;
// - an asynchronous copy from or to pinned memory happens only when its event has been asked for a
//   few times, or at a synchronisation; until then nothing has been read or written;
// - a call without a current context, or with a handle of another context, is an error;
// - memory that a copy under way still uses must not be freed or unpinned: that aborts.
// Any call can be made to fail by fake_cuda_fail().
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "support/fake_cuda/state.hpp"

using namespace ropewalk::test::fake_cuda;

#define FAKE_EXPORT __attribute__((visibility("default")))

extern "C" {

// ---- for tests

// Makes a call of the function fail: the n-th from now on, or every one where n is 0.
FAKE_EXPORT void fake_cuda_fail(const char* function, unsigned call, int result) {
  const std::lock_guard lock(fake().mutex);
  fake().injected.push_back({function, call, result});
}
FAKE_EXPORT void fake_cuda_fail_no_more() {
  const std::lock_guard lock(fake().mutex);
  fake().injected.clear();
}
FAKE_EXPORT unsigned fake_cuda_calls(const char* function) {
  const std::lock_guard lock(fake().mutex);
  return fake().calls[function];
}
FAKE_EXPORT unsigned fake_cuda_all_calls() {
  const std::lock_guard lock(fake().mutex);
  unsigned all = 0;
  for (const auto& each : fake().calls) all += each.second;
  return all;
}
// Streams, events, pinned ranges and opened allocations that are left.
FAKE_EXPORT int fake_cuda_left() {
  const std::lock_guard lock(fake().mutex);
  std::size_t left = fake().streams.size() + fake().pinned.size();
  for (const auto& each : fake().memory) left += each.second.kind == Kind::opened ? 1 : 0;
  return static_cast<int>(left) + fake().events;
}

// ---- what programs call

FAKE_EXPORT Result cuInit(unsigned) {
  FAKE_ENTER(cuInit);
  fake().initialized = true;
  return success;
}
FAKE_EXPORT Result cuCtxSetCurrent(Context context) {
  FAKE_ENTER(cuCtxSetCurrent);
  if (!contexts().empty()) contexts().pop_back();
  if (context != nullptr) contexts().push_back(context);
  return success;
}
FAKE_EXPORT Result cuCtxGetCurrent(Context* context) {
  FAKE_ENTER(cuCtxGetCurrent);
  *context = contexts().empty() ? nullptr : contexts().back();
  return success;
}
FAKE_EXPORT Result cuMemAlloc_v2(DevicePointer* out, std::size_t bytes) {
  FAKE_ENTER(cuMemAlloc);
  FAKE_NEEDS_CONTEXT();
  return allocate(out, bytes, Kind::of_context, contexts().back(), contexts().back()->device);
}
FAKE_EXPORT Result cuMemAllocAsync(DevicePointer* out, std::size_t bytes, Stream) {
  FAKE_ENTER(cuMemAllocAsync);
  FAKE_NEEDS_CONTEXT();
  return allocate(out, bytes, Kind::of_pool, nullptr, contexts().back()->device);
}
FAKE_EXPORT Result cuMemAllocManaged(DevicePointer* out, std::size_t bytes, unsigned) {
  FAKE_ENTER(cuMemAllocManaged);
  FAKE_NEEDS_CONTEXT();
  return allocate(out, bytes, Kind::managed, contexts().back(), contexts().back()->device);
}
FAKE_EXPORT Result cuMemFree_v2(DevicePointer address) {
  FAKE_ENTER(cuMemFree);
  const auto found = fake().memory.find(address);
  if (found == fake().memory.end() || found->second.kind == Kind::opened) return invalid_value;
  release(found, "cuMemFree");
  return success;
}
FAKE_EXPORT Result cuMemcpy(DevicePointer to, DevicePointer from, std::size_t bytes) {
  FAKE_ENTER(cuMemcpy);
  FAKE_NEEDS_CONTEXT();
  std::byte* there = bytes_of(to, bytes);
  const std::byte* here = bytes_of(from, bytes);
  if (there == nullptr || here == nullptr) return invalid_value;
  std::memmove(there, here, bytes);
  return success;
}

// ---- what ropewalk calls

FAKE_EXPORT Result cuGetErrorName(Result result, const char** out) {
  static const std::map<Result, const char*> names = {
      {1, "CUDA_ERROR_INVALID_VALUE"},     {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {3, "CUDA_ERROR_NOT_INITIALIZED"},   {4, "CUDA_ERROR_DEINITIALIZED"},
      {201, "CUDA_ERROR_INVALID_CONTEXT"}, {205, "CUDA_ERROR_MAP_FAILED"},
      {400, "CUDA_ERROR_INVALID_HANDLE"},  {500, "CUDA_ERROR_NOT_FOUND"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {999, "CUDA_ERROR_UNKNOWN"}};
  const auto found = names.find(result);
  *out = found == names.end() ? nullptr : found->second;
  return found == names.end() ? invalid_value : success;
}
FAKE_EXPORT Result cuPointerGetAttributes(unsigned count, int* attributes, void** values,
                                          DevicePointer address) {
  FAKE_ENTER(cuPointerGetAttributes);
  const auto found = allocation_at(address);
  const bool known = found != fake().memory.end();
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case attribute_context:
        *static_cast<Context*>(values[i]) = known ? found->second.context : nullptr;
        break;
      case attribute_memory_type:
        *static_cast<unsigned*>(values[i]) = known ? memory_of_device : 0;
        break;
      case attribute_is_managed:
        *static_cast<unsigned*>(values[i]) = known && found->second.kind == Kind::managed ? 1 : 0;
        break;
      case attribute_device_ordinal:
        *static_cast<int*>(values[i]) = known ? found->second.device : -2;
        break;
      default:
        return invalid_value;
    }
  }
  return success;
}
FAKE_EXPORT Result cuDeviceGet(Device* device, int ordinal) {
  FAKE_ENTER(cuDeviceGet);
  if (ordinal < 0 || ordinal >= devices) return invalid_device;
  *device = ordinal;
  return success;
}
FAKE_EXPORT Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  FAKE_ENTER(cuDevicePrimaryCtxRetain);
  if (device < 0 || device >= devices) return invalid_device;
  *context = &fake().primary[device];
  ++(*context)->retained;
  return success;
}
FAKE_EXPORT Result cuDevicePrimaryCtxRelease_v2(Device device) {
  FAKE_ENTER(cuDevicePrimaryCtxRelease);
  return fake().primary[device].retained-- > 0 ? success : invalid_context;
}
FAKE_EXPORT Result cuCtxPushCurrent_v2(Context context) {
  FAKE_ENTER(cuCtxPushCurrent);
  if (context == nullptr) return invalid_context;
  contexts().push_back(context);
  return success;
}
FAKE_EXPORT Result cuCtxPopCurrent_v2(Context* context) {
  FAKE_ENTER(cuCtxPopCurrent);
  FAKE_NEEDS_CONTEXT();
  *context = contexts().back();
  contexts().pop_back();
  return success;
}
FAKE_EXPORT Result cuStreamCreate(Stream* stream, unsigned) {
  FAKE_ENTER(cuStreamCreate);
  FAKE_NEEDS_CONTEXT();
  *stream = new CUstream_st{contexts().back(), {}};
  fake().streams.push_back(*stream);
  return success;
}
FAKE_EXPORT Result cuStreamSynchronize(Stream stream) {
  FAKE_ENTER(cuStreamSynchronize);
  FAKE_NEEDS_CONTEXT();
  if (stream->context != contexts().back()) return invalid_handle;
  run(stream);
  return success;
}
FAKE_EXPORT Result cuStreamDestroy_v2(Stream stream) {
  FAKE_ENTER(cuStreamDestroy);
  run(stream);
  std::erase(fake().streams, stream);
  delete stream;
  return success;
}
FAKE_EXPORT Result cuEventCreate(Event* event, unsigned) {
  FAKE_ENTER(cuEventCreate);
  FAKE_NEEDS_CONTEXT();
  *event = new CUevent_st{contexts().back()};
  ++fake().events;
  return success;
}
FAKE_EXPORT Result cuEventRecord(Event event, Stream stream) {
  FAKE_ENTER(cuEventRecord);
  FAKE_NEEDS_CONTEXT();
  if (event->context != stream->context || stream->context != contexts().back()) {
    return invalid_handle;
  }
  event->stream = stream;
  event->after = stream->done + stream->copies.size();
  event->queries = fake().random() % (most_queries + 1);
  return success;
}
FAKE_EXPORT Result cuEventQuery(Event event) {
  FAKE_ENTER(cuEventQuery);
  if (event->stream == nullptr || event->stream->done >= event->after) return success;
  if (event->queries-- != 0) return not_ready;
  run(event->stream, event->after);
  return success;
}
FAKE_EXPORT Result cuEventDestroy_v2(Event event) {
  FAKE_ENTER(cuEventDestroy);
  delete event;
  --fake().events;
  return success;
}
FAKE_EXPORT Result cuMemcpyAsync(DevicePointer to, DevicePointer from, std::size_t bytes,
                                 Stream stream) {
  FAKE_ENTER(cuMemcpyAsync);
  FAKE_NEEDS_CONTEXT();
  if (stream->context != contexts().back()) return invalid_handle;
  std::byte* there = bytes_of(to, bytes);
  const std::byte* here = bytes_of(from, bytes);
  if (there == nullptr || here == nullptr) return invalid_value;
  stream->copies.push_back({there, here, bytes});
  // The driver has done with pageable memory when the call returns.
  if (!is_asynchronous(to, bytes) || !is_asynchronous(from, bytes)) run(stream);
  return success;
}
FAKE_EXPORT Result cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned) {
  FAKE_ENTER(cuMemHostRegister);
  FAKE_NEEDS_CONTEXT();
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  for (const auto& each : fake().pinned) {
    if (begin < each.first + each.second && each.first < begin + bytes) return already_registered;
  }
  fake().pinned[begin] = bytes;
  return success;
}
FAKE_EXPORT Result cuMemHostUnregister(void* memory) {
  FAKE_ENTER(cuMemHostUnregister);
  const auto found = fake().pinned.find(reinterpret_cast<std::uint64_t>(memory));
  if (found == fake().pinned.end()) return not_registered;
  require_unused(static_cast<std::byte*>(memory), found->second, "cuMemHostUnregister");
  fake().pinned.erase(found);
  return success;
}
FAKE_EXPORT Result cuMemGetAddressRange_v2(DevicePointer* base, std::size_t* bytes,
                                           DevicePointer address) {
  FAKE_ENTER(cuMemGetAddressRange);
  FAKE_NEEDS_CONTEXT();
  const auto found = allocation_at(address);
  if (found == fake().memory.end()) return not_found;
  *base = found->first;
  *bytes = found->second.bytes;
  return success;
}
FAKE_EXPORT Result cuIpcGetMemHandle(IpcHandle* handle, DevicePointer base) {
  FAKE_ENTER(cuIpcGetMemHandle);
  FAKE_NEEDS_CONTEXT();
  const auto found = fake().memory.find(base);
  if (found == fake().memory.end() || found->second.kind != Kind::of_context) return invalid_value;
  *handle = found->second.handle;
  return success;
}
FAKE_EXPORT Result cuIpcOpenMemHandle_v2(DevicePointer* out, IpcHandle given, unsigned flags) {
  FAKE_ENTER(cuIpcOpenMemHandle);
  FAKE_NEEDS_CONTEXT();
  if (flags != ipc_enable_peer_access) return invalid_value;
  Handle handle;
  std::memcpy(&handle, given.reserved, sizeof handle);
  if (handle.process == getpid()) return invalid_context;
  for (auto& [address, each] : fake().memory) {
    if (each.kind != Kind::opened || each.context != contexts().back() ||
        std::memcmp(each.handle.reserved, given.reserved, sizeof given.reserved) != 0) {
      continue;
    }
    ++each.uses;
    *out = address;
    return success;
  }
  return open_from(out, given, contexts().back());
}
FAKE_EXPORT Result cuIpcCloseMemHandle(DevicePointer address) {
  FAKE_ENTER(cuIpcCloseMemHandle);
  FAKE_NEEDS_CONTEXT();
  const auto found = fake().memory.find(address);
  if (found == fake().memory.end() || found->second.kind != Kind::opened) return invalid_value;
  if (--found->second.uses == 0) release(found, "cuIpcCloseMemHandle");
  return success;
}

}  // extern "C"
