// Memory that is sent and received, and what must stand in it: a closed form of a key and an index,
// so that every rank knows what every other one sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "the_mpi.hpp"

namespace mixed {

// A datatype of MPI and where its bytes lie. All but the first are made of MPI_INT.
struct Layout {
  struct Block {
    std::size_t offset, bytes;
  };
  const char* name;
  MPI_Datatype type;
  std::size_t size, extent;
  std::vector<Block> blocks;
  bool dense() const { return size == extent; }
};

// What all layouts of ints divide, bytes.
inline constexpr std::size_t derived_unit = 48;

void make_layouts();
void free_layouts();
const Layout& bytes_layout();
// One of the layouts of ints; any number chooses.
const Layout& derived_layout(std::uint64_t choice);

// Writes elements of a layout; take_elements() says whether they hold what fill_elements() with
// that key wrote elsewhere, adds what they hold to the digest and writes over it.
void fill_elements(char* at, const Layout&, std::size_t count, std::uint64_t key);
bool take_elements(char* at, const Layout&, std::size_t count, std::uint64_t key);

// Elements of a layout between bytes that nobody may write.
class Buffer {
 public:
  // `mapped`: from mmap, private to the process, as stacks and small heaps are; else from malloc.
  Buffer(const Layout&, std::size_t elements, bool mapped);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  void* data() { return data_; }
  std::size_t elements() const { return elements_; }
  const Layout& layout() const { return *layout_; }
  char* element(std::size_t index) { return data_ + index * layout_->extent; }

  void fill(std::size_t first, std::size_t count, std::uint64_t key);
  // What is taken is written over, so that untouched() sees the rest alone.
  bool take(std::size_t first, std::size_t count, std::uint64_t key);
  bool untouched() const;

 private:
  const Layout* layout_;
  std::size_t elements_, bytes_;
  bool mapped_;
  char* memory_;
  char* data_;
};

// Does the same for plain bytes.
void fill_bytes(void* at, std::size_t bytes, std::uint64_t key);
bool holds_bytes(const void* at, std::size_t bytes, std::uint64_t key);
// Adds bytes to this rank's digest; the order of calls makes no difference.
void digest_bytes(const void* at, std::size_t bytes, std::uint64_t key);
std::uint64_t digest();
void reset_digest();

}  // namespace mixed
