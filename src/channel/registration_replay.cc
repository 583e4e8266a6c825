// A registration cache over a provider that attaches nothing.
#include <algorithm>
#include <set>
#include <string>

#include "channel/registration_cache.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/registration.hpp"

namespace ropewalk {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 47;  // addresses of programs end there

// Nobody looks at what it attaches.
class NothingAttached final : public channel::Provider {
 public:
  channel::Segment own_segment(std::string&) override { return 1; }
  bool open(channel::Segment) override { return true; }
  void close(channel::Segment) noexcept override {}
  std::byte* attach(channel::Segment, std::uint64_t, std::size_t) override {
    return reinterpret_cast<std::byte*>(most_bytes);
  }
  void detach(std::byte*, std::size_t) noexcept override {}
};

void check(const RegistrationRequest& request) {
  if (request.bytes == 0 || request.address >= most_bytes || request.bytes >= most_bytes) {
    throw Error(
        ErrorCode::argument,
        "requests: found " + std::to_string(request.bytes) + " bytes at address " +
            std::to_string(request.address) +
            ", expected at least one byte at an address below 2^47; pass what a trace says");
  }
}

}  // namespace

const char* name(Eviction eviction) { return eviction == Eviction::lru ? "LRU" : "FIFO"; }

RegistrationCounts replay_registrations(std::span<const RegistrationRequest> requests,
                                        std::size_t entries, Eviction eviction) {
  NothingAttached provider;
  channel::RegistrationCache cache(provider, entries, eviction);
  std::set<std::int64_t> open;
  for (const RegistrationRequest& request : requests) {
    check(request);
    if (open.insert(request.process).second) cache.open(request.process);
    const auto found = cache.acquire(request.process, request.address, request.bytes);
    cache.release(std::span(&found.entry, 1));
  }
  const channel::CacheCounts counts = cache.counts();
  return {counts.hits, counts.misses, counts.evictions, counts.entries};
}

}  // namespace ropewalk
