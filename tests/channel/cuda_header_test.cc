// Where NVIDIA's cuda.h is installed: what ropewalk declares of the driver is what that header
// says, and the names are those that its macros make.
#include <cuda.h>
#include <gtest/gtest.h>

#include <string_view>
#include <type_traits>

#include "channel/cuda_driver.hpp"

namespace ropewalk::channel::cuda {
namespace {

// The types have other names here, and the same sizes; pointers are pointers.
template <class Ours, class Theirs>
constexpr bool passed_alike =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;

template <class Ours, class Theirs>
struct CalledAlike : std::false_type {};
template <class... Ours, class... Theirs>
requires(sizeof...(Ours) ==
         sizeof...(Theirs)) struct CalledAlike<Result (*)(Ours...), CUresult (*)(Theirs...)>
    : std::bool_constant<(... && passed_alike<Ours, Theirs>)> {
};

#define NAME_OF(name) #name
#define TEXT_OF(symbol) NAME_OF(symbol)
#define EXPECT_DECLARED(member, symbol, name)                                \
  static_assert(CalledAlike<decltype(Driver::member), decltype(&symbol)>()); \
  EXPECT_EQ(std::string_view(TEXT_OF(symbol)), name)

static_assert(sizeof(Result) == sizeof(CUresult));
static_assert(success == CUDA_SUCCESS && invalid_value == CUDA_ERROR_INVALID_VALUE);
static_assert(not_initialized == CUDA_ERROR_NOT_INITIALIZED);
static_assert(deinitialized == CUDA_ERROR_DEINITIALIZED);
static_assert(invalid_context == CUDA_ERROR_INVALID_CONTEXT && not_ready == CUDA_ERROR_NOT_READY);
static_assert(attribute_context == CU_POINTER_ATTRIBUTE_CONTEXT);
static_assert(attribute_memory_type == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(attribute_is_managed == CU_POINTER_ATTRIBUTE_IS_MANAGED);
static_assert(attribute_device_ordinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(memory_of_device == CU_MEMORYTYPE_DEVICE);
static_assert(stream_non_blocking == CU_STREAM_NON_BLOCKING);
static_assert(event_disable_timing == CU_EVENT_DISABLE_TIMING);
static_assert(register_portable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(ipc_enable_peer_access == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);

TEST(CudaDriver, IsDeclaredAsInTheHeader) {
  EXPECT_DECLARED(get_error_name, cuGetErrorName, "cuGetErrorName");
  EXPECT_DECLARED(pointer_attributes, cuPointerGetAttributes, "cuPointerGetAttributes");
  EXPECT_DECLARED(address_range, cuMemGetAddressRange, "cuMemGetAddressRange_v2");
  EXPECT_DECLARED(device_get, cuDeviceGet, "cuDeviceGet");
  EXPECT_DECLARED(primary_retain, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  EXPECT_DECLARED(primary_release, cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  EXPECT_DECLARED(push_context, cuCtxPushCurrent, "cuCtxPushCurrent_v2");
  EXPECT_DECLARED(pop_context, cuCtxPopCurrent, "cuCtxPopCurrent_v2");
  EXPECT_DECLARED(stream_create, cuStreamCreate, "cuStreamCreate");
  EXPECT_DECLARED(stream_synchronize, cuStreamSynchronize, "cuStreamSynchronize");
  EXPECT_DECLARED(stream_destroy, cuStreamDestroy, "cuStreamDestroy_v2");
  EXPECT_DECLARED(event_create, cuEventCreate, "cuEventCreate");
  EXPECT_DECLARED(event_record, cuEventRecord, "cuEventRecord");
  EXPECT_DECLARED(event_query, cuEventQuery, "cuEventQuery");
  EXPECT_DECLARED(event_destroy, cuEventDestroy, "cuEventDestroy_v2");
  EXPECT_DECLARED(copy, cuMemcpyAsync, "cuMemcpyAsync");
  EXPECT_DECLARED(host_register, cuMemHostRegister, "cuMemHostRegister_v2");
  EXPECT_DECLARED(host_unregister, cuMemHostUnregister, "cuMemHostUnregister");
  EXPECT_DECLARED(ipc_get, cuIpcGetMemHandle, "cuIpcGetMemHandle");
  EXPECT_DECLARED(ipc_open, cuIpcOpenMemHandle, "cuIpcOpenMemHandle_v2");
  EXPECT_DECLARED(ipc_close, cuIpcCloseMemHandle, "cuIpcCloseMemHandle");
}

}  // namespace
}  // namespace ropewalk::channel::cuda
