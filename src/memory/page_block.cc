// This file makes a PageBlock, which is one block from the ladder, and says what a fork does to it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "memory/fork_policy.hpp"
#include "memory/ladder.hpp"
#include "memory/private_copy.hpp"

namespace ropewalk {
namespace memory {
namespace {

// This is the part of a PageBlock that stays where it is while the object moves.
class BlockFork final : public ForkParticipant {
 public:
  BlockFork(std::byte* data, std::size_t bytes, int descriptor)
      : data_(data), bytes_(bytes), descriptor_(descriptor) {}

  const void* base() const noexcept override { return data_; }
  bool has_data() const noexcept override { return true; }

  bool copy_in_child() noexcept override {
    if (descriptor_ < 0) return copy_anonymous();
    const Extent whole{0, bytes_};
    os::Descriptor file = copy_extents(data_, bytes_, {&whole, 1});
    return file && replace_mapping(data_, bytes_, 0, std::move(file), descriptor_);
  }

  // The number stays open, because the PageBlock will close it.
  void drop_in_child() noexcept override {
    os::unmap_to_reserved(data_, bytes_);
    if (descriptor_ < 0) return;
    const os::Descriptor nothing = os::open_memfd("ropewalk-none", os::MemfdPages::normal);
    if (nothing) dup3(nothing.get(), descriptor_, O_CLOEXEC);
  }

 private:
  // Private hugetlb pages would be copied on write, and an empty pool then kills the process. So
  // the child gets ordinary memory.
  bool copy_anonymous() noexcept {
    if (!has_room_for(bytes_)) return false;
    void* found = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) return false;
    if (os::populate_write(found, bytes_) == ENOMEM) {
      munmap(found, bytes_);
      return false;
    }
    std::memcpy(found, data_, bytes_);
    return mremap(found, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, data_) == data_;
  }

  std::byte* data_;
  std::size_t bytes_;
  int descriptor_;
};

void remember(std::byte* data, std::size_t bytes, int descriptor) {
  auto block = std::make_unique<BlockFork>(data, bytes, descriptor);
  add_participant(*block);
  static_cast<void>(block.release());  // the registry's until give_back takes it
}

// Private memory on ordinary pages is the kernel's to copy on write.
bool needs_fork_copy(PageSource source) noexcept {
  return source != PageSource::memalign && source != PageSource::thp;
}

void give_back(std::byte* data, std::size_t bytes, PageSource source, int descriptor) noexcept {
  if (data == nullptr) return;
  if (source == PageSource::memalign) {
    free_memalign(data, bytes);
    return;
  }
  const std::unique_ptr<ForkParticipant> fork(take_participant(data));
  munmap(data, bytes);
  if (descriptor >= 0) close(descriptor);
}

}  // namespace
}  // namespace memory

PageBlock::PageBlock(std::size_t bytes, const MemoryOptions& options) : bytes_(bytes) {
  memory::LadderBlock found = memory::climb(std::max<std::size_t>(bytes, 1), options);
  if (memory::needs_fork_copy(found.source)) {
    memory::remember(found.block.mapping.data(), found.block.mapping.bytes(),
                     found.block.descriptor.get());
  }
  source_ = found.source;
  mapped_ = found.block.mapping.bytes();
  data_ = found.block.mapping.release();
  descriptor_ = found.block.descriptor.release();
  downgrade_ = std::move(found.downgrade);
}

PageBlock::PageBlock(PageBlock&& other) noexcept { *this = std::move(other); }

PageBlock& PageBlock::operator=(PageBlock&& other) noexcept {
  if (this == &other) return *this;
  memory::give_back(data_, mapped_, source_, descriptor_);
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  mapped_ = std::exchange(other.mapped_, 0);
  source_ = other.source_;
  descriptor_ = std::exchange(other.descriptor_, -1);
  downgrade_ = std::exchange(other.downgrade_, {});
  return *this;
}

PageBlock::~PageBlock() { memory::give_back(data_, mapped_, source_, descriptor_); }

}  // namespace ropewalk
