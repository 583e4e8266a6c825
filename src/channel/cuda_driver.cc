#include "channel/cuda_driver.hpp"

#include <dlfcn.h>

#include <atomic>
#include <string>

#include "ropewalk/error.hpp"

namespace ropewalk::channel::cuda {
namespace {

// Linux' name of the driver's library, which every runtime of CUDA loads (by its DT_SONAME).
constexpr const char* library_name = "libcuda.so.1";

// Looks functions up in the library.
class DriverLookup {
 public:
  explicit DriverLookup(void* library) noexcept : library_(library) {}
  template <class Function>
  void find(const char* name, Function*& out) noexcept {
    out = reinterpret_cast<Function*>(dlsym(library_, name));
    if (out == nullptr) complete_ = false;
  }
  bool complete() const noexcept { return complete_; }

 private:
  void* library_;
  bool complete_ = true;
};

// Fills the table; returns false where a function is missing.
bool find_all(void* library, Driver& driver) {
  DriverLookup lookup(library);
  lookup.find("cuGetErrorName", driver.get_error_name);
  lookup.find("cuPointerGetAttributes", driver.pointer_attributes);
  lookup.find("cuMemGetAddressRange_v2", driver.address_range);
  lookup.find("cuDeviceGet", driver.device_get);
  lookup.find("cuDevicePrimaryCtxRetain", driver.primary_retain);
  lookup.find("cuDevicePrimaryCtxRelease_v2", driver.primary_release);
  lookup.find("cuCtxPushCurrent_v2", driver.push_context);
  lookup.find("cuCtxPopCurrent_v2", driver.pop_context);
  lookup.find("cuStreamCreate", driver.stream_create);
  lookup.find("cuStreamSynchronize", driver.stream_synchronize);
  lookup.find("cuStreamDestroy_v2", driver.stream_destroy);
  lookup.find("cuEventCreate", driver.event_create);
  lookup.find("cuEventRecord", driver.event_record);
  lookup.find("cuEventQuery", driver.event_query);
  lookup.find("cuEventDestroy_v2", driver.event_destroy);
  lookup.find("cuMemcpyAsync", driver.copy);
  lookup.find("cuMemHostRegister_v2", driver.host_register);
  lookup.find("cuMemHostUnregister", driver.host_unregister);
  lookup.find("cuIpcGetMemHandle", driver.ipc_get);
  lookup.find("cuIpcOpenMemHandle_v2", driver.ipc_open);
  lookup.find("cuIpcCloseMemHandle", driver.ipc_close);
  return lookup.complete();
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
