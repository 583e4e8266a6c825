// What makes private memory of another process on this node addressable here: the kernel module
// XPMEM (xpmem.hpp), or what a test puts in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ropewalk::channel {

// The name under which other processes ask for the address space of one; 0: none.
using Segment = std::int64_t;

class Provider {
 public:
  Provider() = default;
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;
  virtual ~Provider() = default;

  // Returns the whole address space of this process, for others; 0 with a reason where that does
  // not work.
  virtual Segment own_segment(std::string& reason) = 0;

  // Permission to attach memory of a segment, before the first attach() of it.
  virtual bool open(Segment) = 0;
  virtual void close(Segment) noexcept = 0;  // nothing of it is attached any more

  // Returns the local address of `bytes` at `address` in the process of an open segment, both
  // multiples of the page size; null where the kernel refuses. The memory is readable and writable.
  virtual std::byte* attach(Segment, std::uint64_t address, std::size_t bytes) = 0;
  virtual void detach(std::byte* local, std::size_t bytes) noexcept = 0;  // as attach() gave it
};

}  // namespace ropewalk::channel
