// Lists of runs for the kernel, filled while the copy is walked through and handed over when full.
#include "halo/kernel_copy.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

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

// What is read at a time stays in the second cache until it is copied on; the system call takes
// less than a tenth of the copy's time.
constexpr std::size_t read_bytes = std::size_t{64} << 10;

}  // namespace

// The kernel takes 0.1 us and more for a run, in which it copies a kilobyte; gaps are a quarter of
// the face at most, which its second copy from cache to cache takes as well. Longer runs gain
// nothing. A sender that helps writes run by run, so many short runs would keep the receiver
// waiting for it.
bool has_small_gaps(const kernels::StridedCopy& copy) noexcept {
  constexpr std::size_t least_run = 512, few_runs = 64, most_run = std::size_t{16} << 10;
  const std::size_t length = copy.source_span().size(), run = copy.run_bytes();
  if (copy.contiguous() || length <= copy.bytes() || length > copy.bytes() / 4 * 5) return false;
  return run <= most_run && (run >= least_run || copy.bytes() / run <= few_runs);
}

KernelCopy::KernelCopy(const kernels::StridedCopy& copy, Way way) : copy_(copy), way_(way) {
  if (way == Way::write || !has_small_gaps(copy)) return;
  copy.append_parts(read_bytes, parts_);
  std::size_t most = 0;
  for (const kernels::StridedCopy& part : parts_) most = std::max(most, part.source_span().size());
  read_.resize(most);
}

// Nobody reads what lies in a gap: where that is not mapped, the runs still are.
bool KernelCopy::run(PeerMemory& memory, int peer) noexcept {
  if (parts_.empty()) return run_in_lists(memory, peer);
  return run_with_gaps(memory, peer) || (errno == EFAULT && run_in_lists(memory, peer));
}

// The gaps are memory of the same array, which the neighbour may be writing: they go nowhere.
bool KernelCopy::run_with_gaps(PeerMemory& memory, int peer) noexcept {
  return std::ranges::all_of(parts_, [&](const kernels::StridedCopy& part) {
    const std::span<const std::byte> source = part.source_span();
    iovec here{read_.data(), source.size()};
    iovec there{const_cast<std::byte*>(source.data()), source.size()};
    if (!memory.read(std::span(&here, 1), peer, std::span(&there, 1))) return false;
    part.from(read_.data()).run();
    return true;
  });
}

bool KernelCopy::run_in_lists(PeerMemory& memory, int peer) const noexcept {
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
