#include "buffers.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "random.hpp"

namespace mixed {

namespace {

constexpr char guard = '\xa5';
constexpr std::size_t margin = 64;  // bytes before and after the elements

std::vector<Layout> layouts;
std::uint64_t sum = 0;

std::uint64_t word(std::uint64_t key, std::size_t index) {
  return (key + index) * 0x9e3779b97f4a7c15u ^ (key >> 17);
}

Layout committed(const char* name, MPI_Datatype type, std::vector<Layout::Block> blocks) {
  MPI_Aint lower = 0, extent = 0;
  int size = 0;
  MPI_Type_commit(&type);
  MPI_Type_get_extent(type, &lower, &extent);
  MPI_Type_size(type, &size);
  return {name, type, static_cast<std::size_t>(size), static_cast<std::size_t>(extent),
          std::move(blocks)};
}

}  // namespace

void make_layouts() {
  MPI_Datatype type, narrow;
  layouts.push_back({"bytes", MPI_BYTE, 1, 1, {{0, 1}}});
  layouts.push_back({"ints", MPI_INT, 4, 4, {{0, 4}}});
  MPI_Type_contiguous(4, MPI_INT, &type);
  layouts.push_back(committed("fours", type, {{0, 16}}));
  MPI_Type_vector(3, 2, 5, MPI_INT, &type);
  layouts.push_back(committed("vectors", type, {{0, 8}, {20, 8}, {40, 8}}));
  int lengths[] = {1, 3}, places[] = {0, 2};
  MPI_Type_indexed(2, lengths, places, MPI_INT, &type);
  layouts.push_back(committed("indexed", type, {{0, 4}, {8, 12}}));
  MPI_Type_indexed(2, lengths, places, MPI_INT, &narrow);
  MPI_Type_create_resized(narrow, 0, 28, &type);
  MPI_Type_free(&narrow);
  layouts.push_back(committed("resized", type, {{0, 4}, {8, 12}}));
}

void free_layouts() {
  for (std::size_t i = 2; i < layouts.size(); ++i) MPI_Type_free(&layouts[i].type);
  layouts.clear();
}

const Layout& bytes_layout() { return layouts[0]; }

const Layout& derived_layout(std::uint64_t choice) {
  return layouts[1 + choice % (layouts.size() - 1)];
}

Buffer::Buffer(const Layout& layout, std::size_t elements, bool mapped)
    : layout_(&layout),
      elements_(elements),
      bytes_(elements * layout.extent + 2 * margin),
      mapped_(mapped) {
  if (mapped_) {
    void* made = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) std::abort();
    memory_ = static_cast<char*>(made);
  } else {
    memory_ = static_cast<char*>(std::malloc(bytes_));
    if (memory_ == nullptr) std::abort();
  }
  data_ = memory_ + margin;
  std::memset(memory_, guard, bytes_);
}

Buffer::~Buffer() {
  if (mapped_) {
    munmap(memory_, bytes_);
  } else {
    std::free(memory_);
  }
}

void fill_bytes(void* at, std::size_t bytes, std::uint64_t key) {
  char* out = static_cast<char*>(at);
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t value = word(key, i / 8);
    std::memcpy(out + i, &value, std::min<std::size_t>(8, bytes - i));
  }
}

bool holds_bytes(const void* at, std::size_t bytes, std::uint64_t key) {
  const char* in = static_cast<const char*>(at);
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t value = word(key, i / 8);
    if (std::memcmp(in + i, &value, std::min<std::size_t>(8, bytes - i)) != 0) return false;
  }
  return true;
}

void digest_bytes(const void* at, std::size_t bytes, std::uint64_t key) {
  const char* in = static_cast<const char*>(at);
  std::uint64_t hash = key ^ bytes;
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t value = 0;
    std::memcpy(&value, in + i, std::min<std::size_t>(8, bytes - i));
    hash = (hash ^ value) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  sum += mix(hash);
}

std::uint64_t digest() { return sum; }
void reset_digest() { sum = 0; }

void fill_elements(char* at, const Layout& layout, std::size_t count, std::uint64_t key) {
  if (layout.dense()) return fill_bytes(at, count * layout.size, key);
  std::vector<char> packed(count * layout.size);
  fill_bytes(packed.data(), packed.size(), key);
  const char* from = packed.data();
  for (std::size_t i = 0; i < count; ++i, at += layout.extent) {
    for (const Layout::Block& block : layout.blocks) {
      std::memcpy(at + block.offset, from, block.bytes);
      from += block.bytes;
    }
  }
}

bool take_elements(char* at, const Layout& layout, std::size_t count, std::uint64_t key) {
  if (layout.dense()) {
    const std::size_t bytes = count * layout.size;
    const bool right = holds_bytes(at, bytes, key);
    digest_bytes(at, bytes, key);
    std::memset(at, guard, bytes);
    return right;
  }
  std::vector<char> packed(count * layout.size);
  char* to = packed.data();
  for (std::size_t i = 0; i < count; ++i, at += layout.extent) {
    for (const Layout::Block& block : layout.blocks) {
      std::memcpy(to, at + block.offset, block.bytes);
      std::memset(at + block.offset, guard, block.bytes);
      to += block.bytes;
    }
  }
  digest_bytes(packed.data(), packed.size(), key);
  return holds_bytes(packed.data(), packed.size(), key);
}

void Buffer::fill(std::size_t first, std::size_t count, std::uint64_t key) {
  fill_elements(element(first), *layout_, count, key);
}

bool Buffer::take(std::size_t first, std::size_t count, std::uint64_t key) {
  return take_elements(element(first), *layout_, count, key);
}

bool Buffer::untouched() const {
  // Every byte is its neighbour's and the first is the guard.
  return memory_[0] == guard && std::memcmp(memory_, memory_ + 1, bytes_ - 1) == 0;
}

}  // namespace mixed
