// Lists of runs for the kernel, filled while the copy is walked through and handed over when full.
#include "halo/kernel_copy.hpp"

#include <array>

namespace ropewalk::halo {

namespace {

using channel::PeerMemory;

// The runs of one side of a copy. Runs that follow each other in memory become one: a face may be
// contiguous on one side and strided on the other, and the kernel takes time for each run.
class Runs {
 public:
  bool full() const noexcept { return count_ == runs_.size(); }
  void add(const std::byte* begin, std::size_t bytes) noexcept {
    if (count_ > 0) {
      iovec& last = runs_[count_ - 1];
      if (static_cast<const std::byte*>(last.iov_base) + last.iov_len == begin) {
        last.iov_len += bytes;
        return;
      }
    }
    runs_[count_++] = {const_cast<std::byte*>(begin), bytes};
  }
  std::span<iovec> take() noexcept {
    const std::size_t count = count_;
    count_ = 0;
    return std::span(runs_).first(count);
  }

 private:
  std::array<iovec, PeerMemory::most_runs> runs_;  // 8 KiB, on the stack; no need to zero them
  std::size_t count_ = 0;
};

}  // namespace

bool KernelCopy::run(PeerMemory& memory, int peer) const noexcept {
  Runs here;
  Runs there;
  const auto hand_over = [&] {
    return way_ == Way::read ? memory.read(here.take(), peer, there.take())
                             : memory.write(here.take(), peer, there.take());
  };
  const bool walked =
      copy_.each_run([&](const std::byte* source, const std::byte* destination, std::size_t bytes) {
        if ((here.full() || there.full()) && !hand_over()) return false;
        here.add(way_ == Way::read ? destination : source, bytes);
        there.add(way_ == Way::read ? source : destination, bytes);
        return true;
      });
  return walked && hand_over();
}

void KernelCopy::append_parts(std::size_t most_bytes, std::vector<KernelCopy>& out) const {
  std::vector<kernels::StridedCopy> parts;
  copy_.append_parts(most_bytes, parts);
  for (const kernels::StridedCopy& part : parts) out.emplace_back(part, way_);
}

}  // namespace ropewalk::halo
