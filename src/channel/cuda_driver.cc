#include "channel/cuda_driver.hpp"

#include <dlfcn.h>

#include <atomic>
#include <string>

#include "ropewalk/error.hpp"

namespace ropewalk::channel::cuda {
namespace {

// Linux' name of the driver's library, which every runtime of CUDA loads (by its DT_SONAME).
constexpr const char* library_name = "libcuda.so.1";

template <class Function>
bool find(void* library, const char* name, Function*& out) {
  out = reinterpret_cast<Function*>(dlsym(library, name));
  return out != nullptr;
}

// Fills the table; returns false where a function is missing.
bool find_all(void* library, Driver& driver) {
  return find(library, "cuGetErrorName", driver.get_error_name) &&
         find(library, "cuPointerGetAttributes", driver.pointer_attributes) &&
         find(library, "cuMemGetAddressRange_v2", driver.address_range) &&
         find(library, "cuDeviceGet", driver.device_get) &&
         find(library, "cuDevicePrimaryCtxRetain", driver.primary_retain) &&
         find(library, "cuDevicePrimaryCtxRelease_v2", driver.primary_release) &&
         find(library, "cuCtxPushCurrent_v2", driver.push_context) &&
         find(library, "cuCtxPopCurrent_v2", driver.pop_context) &&
         find(library, "cuStreamCreate", driver.stream_create) &&
         find(library, "cuStreamSynchronize", driver.stream_synchronize) &&
         find(library, "cuStreamDestroy_v2", driver.stream_destroy) &&
         find(library, "cuEventCreate", driver.event_create) &&
         find(library, "cuEventRecord", driver.event_record) &&
         find(library, "cuEventQuery", driver.event_query) &&
         find(library, "cuEventDestroy_v2", driver.event_destroy) &&
         find(library, "cuMemcpyAsync", driver.copy) &&
         find(library, "cuMemHostRegister_v2", driver.host_register) &&
         find(library, "cuMemHostUnregister", driver.host_unregister) &&
         find(library, "cuIpcGetMemHandle", driver.ipc_get) &&
         find(library, "cuIpcOpenMemHandle_v2", driver.ipc_open) &&
         find(library, "cuIpcCloseMemHandle", driver.ipc_close);
}

}  // namespace

const Driver* loaded_driver() {
  static std::atomic<const Driver*> found = nullptr;
  // Pairs with the release below.
  if (const Driver* known = found.load(std::memory_order_acquire)) return known;
  void* library = dlopen(library_name, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  // Kept, like the library, until the process ends.
  auto* driver = new Driver;
  if (!find_all(library, *driver)) {
    delete driver;
    dlclose(library);
    return nullptr;
  }
  const Driver* before = nullptr;
  if (found.compare_exchange_strong(before, driver, std::memory_order_acq_rel)) return driver;
  delete driver;  // another thread was faster
  return before;
}

void require(const Driver& driver, const char* call, Result result) {
  if (result == success) return;
  const char* name = nullptr;
  if (driver.get_error_name(result, &name) != success) name = nullptr;
  throw Error(ErrorCode::system, std::string(call) + ": " + (name == nullptr ? "error" : name) +
                                     " (" + std::to_string(result) +
                                     "); look for an earlier error of the program's own use of "
                                     "the device, or set ROPEWALK_DEVICE_BUFFERS=off and pass "
                                     "host memory");
}

}  // namespace ropewalk::channel::cuda
