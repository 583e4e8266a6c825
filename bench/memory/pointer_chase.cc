#include "memory/pointer_chase.hpp"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace ropewalk::bench {
namespace {

constexpr std::size_t page_bytes = 4096;  // whatever the pages are: so all kinds do the same
constexpr std::size_t line_bytes = 64;

std::string explain(int error) {
  std::string text = std::strerror(error);
  if (error == EACCES || error == EPERM) {
    return text + "; as root: `sysctl kernel.perf_event_paranoid=2`, or the filter of a container";
  }
  if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV) {
    return text + "; this processor or virtual machine has no such counter";
  }
  return text;
}

}  // namespace

PointerChase::PointerChase(std::byte* data, std::size_t bytes, unsigned seed)
    : loads_(std::max<std::size_t>(bytes / page_bytes, 1)) {
  std::mt19937 random(seed);
  const std::size_t lines = std::max<std::size_t>(std::min(bytes, page_bytes) / line_bytes, 1);
  std::vector<std::byte*> stops(loads_);
  // A line of its own choice in each page: the same one in all would share a few sets of a cache.
  for (std::size_t i = 0; i < loads_; ++i) {
    stops[i] = data + i * page_bytes + random() % lines * line_bytes;
  }
  std::shuffle(stops.begin(), stops.end(), random);
  for (std::size_t i = 0; i < loads_; ++i) {
    std::byte* const next = stops[(i + 1) % loads_];
    std::memcpy(stops[i], &next, sizeof next);
  }
  first_ = stops.front();
}

const void* PointerChase::go(int rounds) const {
  const std::byte* at = first_;
  for (std::size_t left = loads_ * static_cast<std::size_t>(rounds); left > 0; --left) {
    std::memcpy(&at, at, sizeof at);
  }
  return at;
}

TlbMissCounter::TlbMissCounter() {
  perf_event_attr event{};
  event.size = sizeof event;
  event.type = PERF_TYPE_HW_CACHE;
  event.config = PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_READ << 8 |
                 PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
  event.disabled = 1;
  event.exclude_kernel = 1;
  event.exclude_hv = 1;
  event_ = static_cast<int>(syscall(SYS_perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (event_ < 0) refusal_ = "perf_event_open: " + explain(errno);
}

TlbMissCounter::~TlbMissCounter() {
  if (event_ >= 0) close(event_);
}

void TlbMissCounter::start() noexcept {
  if (event_ < 0) return;
  ioctl(event_, PERF_EVENT_IOC_RESET, 0);
  ioctl(event_, PERF_EVENT_IOC_ENABLE, 0);
}

std::optional<std::uint64_t> TlbMissCounter::stop() noexcept {
  if (event_ < 0) return std::nullopt;
  ioctl(event_, PERF_EVENT_IOC_DISABLE, 0);
  std::uint64_t count = 0;
  if (read(event_, &count, sizeof count) != sizeof count) return std::nullopt;
  return count;
}

}  // namespace ropewalk::bench
