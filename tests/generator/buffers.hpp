// Buffers of a random collective, with guards around them, and what lies in them before the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "generator/cases.hpp"

namespace generator {

// Where buffers come from: private memory, or memory that other ranks may map.
struct Allocator {
  void* (*allocate)(std::size_t bytes, bool shared);
  void (*deallocate)(void* memory, std::size_t bytes, bool shared);
};
Allocator private_memory();  // of operator new, for both

// Room for the blocks of one side.
class Memory {
 public:
  Memory(const Allocator&, const Side&, bool shared, std::size_t skew, std::byte guard);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return start_ + offset_; }
  void take(const Memory& from);  // all bytes, guards too, of one of the same size
  bool same(const Memory& other) const;
  std::string difference(const char* which, const Side&, const Memory& expected) const;

 private:
  Allocator allocator_;
  bool shared_;
  std::byte* start_ = nullptr;
  std::size_t offset_ = 0;
  std::size_t bytes_ = 0;
};

// Both buffers of a rank in one call, filled.
struct Buffers {
  Buffers(const Allocator&, const Case&, const Plan&, int rank, bool private_only = false);
  Memory send;
  Memory receive;
};

// Elements of the blocks: the same for the same case, rank and salt.
void fill(const Case&, const Side&, const std::byte* data, int rank, std::uint64_t salt);
// Bytes that are nobody's: MPI may move them or not.
void clear_padding(const Side&, const Memory&);
// What lies behind the result of a scattering reduction in place: anything, so it is made the same.
void fill_behind(const Catalogue&, const Case&, const Side& receive, const Memory&, int rank,
                 int ranks);

}  // namespace generator
