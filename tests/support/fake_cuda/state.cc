#include "support/fake_cuda/state.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ropewalk::test::fake_cuda {
namespace {

bool is_pinned(std::uint64_t address, std::size_t bytes) {
  auto found = fake().pinned.upper_bound(address);
  if (found == fake().pinned.begin()) return false;
  --found;
  return address + bytes <= found->first + found->second;
}

}  // namespace

Fake& fake() {
  static auto* instance = new Fake;
  return *instance;
}

std::vector<Context>& contexts() {
  thread_local std::vector<Context> all;
  return all;
}

Result entered(const char* function) {
  ++fake().calls[function];
  for (auto each = fake().injected.begin(); each != fake().injected.end(); ++each) {
    if (each->function != function) continue;
    if (each->call == 0) return each->result;
    if (--each->call == 0) {
      const Result result = each->result;
      fake().injected.erase(each);
      return result;
    }
  }
  return fake().initialized || std::strcmp(function, "cuInit") == 0 ? success : not_initialized;
}

Memory::iterator allocation_at(DevicePointer address) {
  auto& all = fake().memory;
  auto found = all.upper_bound(address);
  if (found == all.begin()) return all.end();
  --found;
  return address < found->first + found->second.bytes ? found : all.end();
}

std::byte* bytes_of(DevicePointer address, std::size_t bytes) {
  const auto found = allocation_at(address);
  if (found == fake().memory.end()) return reinterpret_cast<std::byte*>(address);
  const std::size_t offset = address - found->first;
  return offset + bytes <= found->second.bytes ? found->second.bytes_at + offset : nullptr;
}

bool is_asynchronous(DevicePointer address, std::size_t bytes) {
  return allocation_at(address) != fake().memory.end() || is_pinned(address, bytes);
}

void run(Stream stream, std::uint64_t end) {
  while (stream->done < end && !stream->copies.empty()) {
    const Copy copy = stream->copies.front();
    stream->copies.pop_front();
    std::memmove(copy.to, copy.from, copy.bytes);
    ++stream->done;
  }
}

void require_unused(const std::byte* begin, std::size_t bytes, const char* call) {
  for (Stream stream : fake().streams) {
    for (const Copy& copy : stream->copies) {
      for (const std::byte* at : {static_cast<const std::byte*>(copy.to), copy.from}) {
        if (at + copy.bytes <= begin || begin + bytes <= at) continue;
        std::fprintf(stderr, "fake CUDA: %s of memory that a copy under way uses\n", call);
        std::abort();
      }
    }
  }
}

Result allocate(DevicePointer* out, std::size_t bytes, Kind kind, Context context, int device) {
  const std::size_t mapped = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  const std::uint64_t number = ++fake().number;
  const std::string name = "fake-cuda-" + std::to_string(number);
  const int file = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(mapped)) != 0) return out_of_memory;
  const int access = kind == Kind::managed ? PROT_READ | PROT_WRITE : PROT_NONE;
  void* address = mmap(nullptr, mapped, access, MAP_SHARED, file, 0);
  void* second = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (address == MAP_FAILED || second == MAP_FAILED) return out_of_memory;
  Allocation allocation{bytes,  mapped, file, static_cast<std::byte*>(second), kind, context,
                        device, {},     1};
  const Handle handle{getpid(), file, bytes, number};
  std::memcpy(allocation.handle.reserved, &handle, sizeof handle);
  *out = reinterpret_cast<DevicePointer>(address);
  fake().memory[*out] = allocation;
  return success;
}

Result open_from(DevicePointer* out, const IpcHandle& given, Context context) {
  Handle handle;
  std::memcpy(&handle, given.reserved, sizeof handle);
  const std::string path =
      "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
  char name[64] = {};
  if (readlink(path.c_str(), name, sizeof name - 1) < 0) return map_failed;
  const std::string wanted = "/memfd:fake-cuda-" + std::to_string(handle.number) + " ";
  if (std::strncmp(name, wanted.c_str(), wanted.size()) != 0) return invalid_handle;
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return map_failed;
  const std::size_t mapped = (handle.bytes + page_bytes - 1) / page_bytes * page_bytes;
  void* address = mmap(nullptr, mapped, PROT_NONE, MAP_SHARED, file, 0);
  void* second = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (address == MAP_FAILED || second == MAP_FAILED) return map_failed;
  *out = reinterpret_cast<DevicePointer>(address);
  fake().memory[*out] = {
      handle.bytes,    mapped, file, static_cast<std::byte*>(second), Kind::opened, context,
      context->device, given,  1};
  return success;
}

void release(Memory::iterator found, const char* call) {
  const Allocation& allocation = found->second;
  require_unused(allocation.bytes_at, allocation.bytes, call);
  munmap(reinterpret_cast<void*>(found->first), allocation.mapped);
  munmap(allocation.bytes_at, allocation.mapped);
  close(allocation.file);
  fake().memory.erase(found);
}

}  // namespace ropewalk::test::fake_cuda
