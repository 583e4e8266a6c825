// Whether the kernel copies memory of this process for others (process_vm_readv and _writev).
//
// It refuses mappings that drivers make of a device's own memory (VM_IO, VM_PFNMAP). The owner of a
// buffer finds that out before it tells the others where the buffer lies, so that all ranks take
// another path together; a reader would find it out in the middle of a call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ropewalk::channel {

class OwnMemory {
 public:
  // Returns false where the kernel has refused the first or the last byte, though there is memory.
  // A range that the kernel has copied from is not tried again: a new range costs 0.3 us, a known
  // one some ns.
  bool is_copied_by_kernel(const void* data, std::size_t bytes) noexcept;

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
  };
  bool is_known(const Range&) const noexcept;
  void remember(const Range&) noexcept;

  std::array<Range, 8> known_{};
  std::size_t turn_ = 0;
};

}  // namespace ropewalk::channel
