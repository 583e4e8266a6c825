// This file implements the memory part of the C interface.
#include "c_call.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/ropewalk.h"

namespace {

// Fills in the fields of the C interface's inspection.
rw_inspection to_c(const ropewalk::Inspection& found) {
  rw_inspection result{};
  result.bytes = found.bytes;
  result.resident_bytes = found.resident_bytes;
  for (const ropewalk::PageUse& use : found.pages) {
    if (use.page_bytes >= (std::size_t{2} << 20)) result.huge_bytes += use.bytes;
  }
  result.alignment = found.alignment;
  result.peers_can_map = found.peers_can_map ? 1 : 0;
  return result;
}

}  // namespace

extern "C" {

int rw_alloc(size_t bytes, size_t alignment, void** out) {
  return ropewalk::c_call([&] {
    ropewalk::require_argument(out, "out");
    *out = ropewalk::Arena::process().allocate(bytes, alignment == 0 ? 128 : alignment);
  });
}

int rw_free(void* address) {
  return ropewalk::c_call([&] {
    if (address == nullptr) return;
    ropewalk::Arena& arena = ropewalk::Arena::process();
    arena.usable_bytes(address);  // Error(argument) where it is no live block
    arena.deallocate(address);
  });
}

int rw_inspect(const void* address, size_t bytes, rw_inspection* out) {
  return ropewalk::c_call([&] {
    ropewalk::require_argument(address, "address");
    ropewalk::require_argument(out, "out");
    *out = to_c(ropewalk::inspect(address, bytes));
  });
}
}
