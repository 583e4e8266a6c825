#include "support/device.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>

namespace ropewalk::test {
namespace {

void* library() {
  static void* loaded = dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
  if (loaded == nullptr) throw std::runtime_error(dlerror());
  return loaded;
}

template <class... Types>
int call(const char* function, Types... values) {
  auto* found = reinterpret_cast<int (*)(Types...)>(dlsym(library(), function));
  if (found == nullptr) throw std::runtime_error(std::string(function) + ": not in the library");
  return found(values...);
}

void require(const char* function, int result) {
  if (result == 0) return;
  throw std::runtime_error(std::string(function) + ": " + std::to_string(result));
}

}  // namespace

void use_device(int device) {
  require("cuInit", call("cuInit", 0U));
  void* context = nullptr;
  require("cuDevicePrimaryCtxRetain", call("cuDevicePrimaryCtxRetain", &context, device));
  require("cuCtxSetCurrent", call("cuCtxSetCurrent", context));
}

bool has_fake_driver() {
  void* found = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (found != nullptr) dlclose(found);
  return found != nullptr;
}

void fail_call(const std::string& function, unsigned number, int result) {
  call("fake_cuda_fail", function.c_str(), number, result);
}
void fail_no_more() { call("fake_cuda_fail_no_more"); }
unsigned calls_of(const std::string& function) {
  return static_cast<unsigned>(call("fake_cuda_calls", function.c_str()));
}
unsigned calls_of_driver() { return static_cast<unsigned>(call("fake_cuda_all_calls")); }
int left_in_driver() { return call("fake_cuda_left"); }
const void* current_context() {
  void* context = nullptr;
  require("cuCtxGetCurrent", call("cuCtxGetCurrent", &context));
  return context;
}

DeviceBytes::DeviceBytes(std::size_t bytes, DeviceKind kind) {
  bytes = std::max<std::size_t>(bytes, 1);
  if (kind == DeviceKind::usual) {
    require("cuMemAlloc", call("cuMemAlloc_v2", &address_, bytes));
  } else if (kind == DeviceKind::of_pool) {
    void* stream = nullptr;
    require("cuMemAllocAsync", call("cuMemAllocAsync", &address_, bytes, stream));
  } else {
    require("cuMemAllocManaged", call("cuMemAllocManaged", &address_, bytes, 1U));
  }
}

DeviceBytes::~DeviceBytes() { call("cuMemFree_v2", address_); }

void DeviceBytes::write(const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  require("cuMemcpy", call("cuMemcpy", address_, reinterpret_cast<std::uint64_t>(from), bytes));
}

void DeviceBytes::read(void* to, std::size_t bytes) const {
  if (bytes == 0) return;
  require("cuMemcpy", call("cuMemcpy", reinterpret_cast<std::uint64_t>(to), address_, bytes));
}

}  // namespace ropewalk::test
