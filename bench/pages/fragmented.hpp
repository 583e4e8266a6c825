// Memory of a node that has been running for a while: free pages lie scattered, one by one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ropewalk::bench {

// While it lives, small pages that this process touches come scattered. Two mappings take pages
// alternately, then one gives its pages back in random order: the free lists of single pages are
// now full of holes between pages that stay in use, and the kernel serves single pages from those
// first. Costs 2 x bytes while it is made and `bytes` while it lives.
class FragmentedMemory {
 public:
  explicit FragmentedMemory(std::size_t bytes);  // Error(memory) where it cannot be had
  ~FragmentedMemory();
  FragmentedMemory(const FragmentedMemory&) = delete;
  FragmentedMemory& operator=(const FragmentedMemory&) = delete;

 private:
  std::byte* kept_ = nullptr;
  std::size_t bytes_ = 0;
};

// How a resident range lies in physical memory.
struct Contiguity {
  std::size_t pages = 0;  // of 4 KiB
  std::size_t runs = 0;   // of physically neighbouring pages
  std::size_t mean_run_bytes() const { return runs == 0 ? 0 : pages * 4096 / runs; }
};
// From /proc/self/pagemap, which shows frame numbers to root alone: nothing for other users.
std::optional<Contiguity> contiguity(const void* address, std::size_t bytes);
// The same from frame numbers, one a page; 0 is a page that is not there.
Contiguity contiguity_of(const std::vector<unsigned long long>& frames);
std::string text(const std::optional<Contiguity>& found);

// A mapping that ends with its scope.
class BlockMapping {
 public:
  BlockMapping() = default;
  // Maps a descriptor from its beginning, on a 2 MiB boundary, so that whole huge pages can be
  // used.
  BlockMapping(int descriptor, std::size_t bytes);
  BlockMapping(BlockMapping&& other) noexcept { swap(other); }
  BlockMapping& operator=(BlockMapping&& other) noexcept {
    swap(other);
    return *this;
  }
  ~BlockMapping();
  std::byte* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  void swap(BlockMapping& other) noexcept;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// A memfd of 4 KiB pages, untouched: each page is taken when it is first touched.
class SmallPages {
 public:
  SmallPages() = default;
  explicit SmallPages(std::size_t bytes);
  SmallPages(SmallPages&& other) noexcept;
  SmallPages& operator=(SmallPages&& other) noexcept;
  ~SmallPages();
  std::byte* data() const noexcept { return mapping_.data(); }
  int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_ = -1;
  BlockMapping mapping_;
};

}  // namespace ropewalk::bench
