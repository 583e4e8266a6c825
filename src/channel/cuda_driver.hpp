// The functions of CUDA's driver that copies of device memory need, as its library exports them.
//
// They are declared here, so that nothing of CUDA is needed to build ropewalk. Names, types and
// numbers are those of NVIDIA's header cuda.h, versions 11.0 to 13.0; they are the driver's binary
// interface, which newer drivers keep. A name that ends in _v2 is what cuda.h makes of the plain
// one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ropewalk::channel::cuda {

using Result = int;                   // CUresult, an enum
using Device = int;                   // CUdevice
using DevicePointer = std::uint64_t;  // CUdeviceptr: device and host memory have one address space
using Context = struct CUctx_st*;
using Stream = struct CUstream_st*;
using Event = struct CUevent_st*;
struct IpcHandle {  // CUipcMemHandle
  char reserved[64];
};

// ---- of CUresult
inline constexpr Result success = 0;
inline constexpr Result invalid_value = 1;
inline constexpr Result not_initialized = 3;  // nobody has called cuInit()
inline constexpr Result deinitialized = 4;    // the process is ending
inline constexpr Result invalid_context = 201;
inline constexpr Result not_ready = 600;

// ---- of CUpointer_attribute
inline constexpr int attribute_context = 1;
inline constexpr int attribute_memory_type = 2;
inline constexpr int attribute_is_managed = 8;
inline constexpr int attribute_device_ordinal = 9;
inline constexpr unsigned memory_of_device = 2;  // CU_MEMORYTYPE_DEVICE

// ---- flags
inline constexpr unsigned stream_non_blocking = 1;     // does not wait for the stream 0
inline constexpr unsigned event_disable_timing = 2;    // then a query costs least
inline constexpr unsigned register_portable = 1;       // for all contexts of the process
inline constexpr unsigned ipc_enable_peer_access = 1;  // cuIpcOpenMemHandle takes no other value

// The functions, in the order of their names above each group.
struct Driver {
  // Of pointers: cuGetErrorName, cuPointerGetAttributes, cuMemGetAddressRange_v2.
  Result (*get_error_name)(Result, const char**) = nullptr;
  Result (*pointer_attributes)(unsigned count, int* attributes, void** values,
                               DevicePointer) = nullptr;
  Result (*address_range)(DevicePointer* base, std::size_t* bytes, DevicePointer) = nullptr;
  // Of contexts: cuDeviceGet, cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRelease_v2,
  // cuCtxPushCurrent_v2, cuCtxPopCurrent_v2.
  Result (*device_get)(Device*, int ordinal) = nullptr;
  Result (*primary_retain)(Context*, Device) = nullptr;
  Result (*primary_release)(Device) = nullptr;
  Result (*push_context)(Context) = nullptr;
  Result (*pop_context)(Context*) = nullptr;
  // Of copies: cuStreamCreate, cuStreamSynchronize, cuStreamDestroy_v2, cuEventCreate,
  // cuEventRecord, cuEventQuery, cuEventDestroy_v2, cuMemcpyAsync.
  Result (*stream_create)(Stream*, unsigned flags) = nullptr;
  Result (*stream_synchronize)(Stream) = nullptr;
  Result (*stream_destroy)(Stream) = nullptr;
  Result (*event_create)(Event*, unsigned flags) = nullptr;
  Result (*event_record)(Event, Stream) = nullptr;
  Result (*event_query)(Event) = nullptr;
  Result (*event_destroy)(Event) = nullptr;
  Result (*copy)(DevicePointer to, DevicePointer from, std::size_t, Stream) = nullptr;
  // Of pinned memory: cuMemHostRegister_v2, cuMemHostUnregister.
  Result (*host_register)(void*, std::size_t, unsigned flags) = nullptr;
  Result (*host_unregister)(void*) = nullptr;
  // Of memory of other processes: cuIpcGetMemHandle, cuIpcOpenMemHandle_v2, cuIpcCloseMemHandle.
  Result (*ipc_get)(IpcHandle*, DevicePointer base) = nullptr;
  Result (*ipc_open)(DevicePointer*, IpcHandle, unsigned flags) = nullptr;
  Result (*ipc_close)(DevicePointer) = nullptr;
};

// Returns the driver that this process has loaded; null where it has none, or one so old that it
// lacks a function. Loads nothing: without the library in the process no buffer can be a device's.
const Driver* loaded_driver();

// Throws Error(system) "CALL: NAME OF THE RESULT; what to do", unless the result is success.
void require(const Driver&, const char* call, Result);

inline DevicePointer pointer_to(const void* memory) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory);
}

}  // namespace ropewalk::channel::cuda
