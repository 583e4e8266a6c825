// What the fake driver knows of its memory, streams and calls; fake_cuda.cc has its functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "channel/cuda_driver.hpp"

namespace ropewalk::test::fake_cuda {

using namespace channel::cuda;

inline constexpr Result out_of_memory = 2;
inline constexpr Result invalid_device = 101;
inline constexpr Result map_failed = 205;
inline constexpr Result invalid_handle = 400;
inline constexpr Result not_found = 500;
inline constexpr Result already_registered = 712;
inline constexpr Result not_registered = 713;
inline constexpr int devices = 2;
inline constexpr std::size_t page_bytes = 4096;
inline constexpr unsigned most_queries = 4;  // of an event, before it is complete

enum class Kind { of_context, of_pool, managed, opened };

struct Allocation {
  std::size_t bytes;
  std::size_t mapped;
  int file;
  std::byte* bytes_at;
  Kind kind;
  Context context;
  int device;
  IpcHandle handle;
  int uses;  // of an opened one
};

struct Handle {  // what is inside of an IpcHandle
  int process;
  int file;
  std::size_t bytes;
  std::uint64_t number;
};

struct Copy {
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
};

}  // namespace ropewalk::test::fake_cuda

// The types behind the driver's handles.
namespace ropewalk::channel::cuda {

struct CUctx_st {
  int device;
  int retained;
};
struct CUstream_st {
  Context context;
  std::deque<test::fake_cuda::Copy> copies;
  std::uint64_t done = 0;
};
struct CUevent_st {
  Context context;
  Stream stream = nullptr;
  std::uint64_t after = 0;
  unsigned queries = 0;
};

}  // namespace ropewalk::channel::cuda

namespace ropewalk::test::fake_cuda {

struct Injected {
  std::string function;
  unsigned call;  // from now on, counted from 1; 0: every call
  Result result;
};

struct Fake {
  std::mutex mutex;
  bool initialized = false;
  CUctx_st primary[devices] = {{0, 0}, {1, 0}};
  std::map<DevicePointer, Allocation> memory;
  std::map<std::uint64_t, std::size_t> pinned;
  std::vector<Stream> streams;
  int events = 0;
  std::map<std::string, unsigned> calls;
  std::vector<Injected> injected;
  std::uint64_t number = 0;
  std::mt19937 random{7};
};

Fake& fake();
// The contexts of this thread, the current one last.
std::vector<Context>& contexts();

// Counts the call, and returns what it is to fail with.
Result entered(const char* function);

#define FAKE_ENTER(function)                \
  const std::lock_guard lock(fake().mutex); \
  if (const Result injected_result = entered(#function)) return injected_result

#define FAKE_NEEDS_CONTEXT() \
  if (contexts().empty()) return invalid_context

using Memory = std::map<DevicePointer, Allocation>;
// The allocation that an address lies in.
Memory::iterator allocation_at(DevicePointer address);
// Where the bytes of a range are; null where it leaves its allocation.
std::byte* bytes_of(DevicePointer address, std::size_t bytes);
bool is_asynchronous(DevicePointer address, std::size_t bytes);

// Makes the copies of a stream up to a number.
void run(Stream stream, std::uint64_t end = UINT64_MAX);
// The caller gives memory up: aborts where a copy under way uses it.
void require_unused(const std::byte* begin, std::size_t bytes, const char* call);

Result allocate(DevicePointer* out, std::size_t bytes, Kind kind, Context context, int device);
// Opens an allocation of another process for a context.
Result open_from(DevicePointer* out, const IpcHandle& given, Context context);
void release(Memory::iterator found, const char* call);

}  // namespace ropewalk::test::fake_cuda
