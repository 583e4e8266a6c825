#include "channel/attachments.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "channel/xpmem.hpp"
#include "node/peers.hpp"
#include "os/clock.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::channel {
namespace {

thread_local RegistrationCache* replacement = nullptr;

// ROPEWALK_REGISTRATIONS: entries of the cache. One mapping each, of the 65530 a process may have.
std::size_t environment_capacity() {
  constexpr std::size_t most = 32768;
  const char* text = std::getenv("ROPEWALK_REGISTRATIONS");
  if (text == nullptr) return RegistrationCache::default_capacity;
  const char* end = text + std::strlen(text);
  std::size_t value = 0;
  const auto [after, error] = std::from_chars(text, end, value);
  if (error != std::errc() || after != end || value < 1 || value > most) {
    throw Error(ErrorCode::argument, std::string("ROPEWALK_REGISTRATIONS: found \"") + text +
                                         "\"; expected 1 to " + std::to_string(most));
  }
  return value;
}

// ROPEWALK_XPMEM: whether private buffers may be attached.
bool environment_allows() {
  const char* text = std::getenv("ROPEWALK_XPMEM");
  if (text == nullptr || std::string_view(text) == "auto") return true;
  if (std::string_view(text) == "off") return false;
  throw Error(ErrorCode::argument,
              std::string("ROPEWALK_XPMEM: found \"") + text + "\"; expected auto or off");
}

}  // namespace

RegistrationCache& process_cache() {
  if (replacement != nullptr) return *replacement;
  static Provider* const provider = make_xpmem().release();
  static auto* const cache = new RegistrationCache(*provider, environment_capacity());
  return *cache;
}

RegistrationCache* replace_process_cache(RegistrationCache* cache) noexcept {
  return std::exchange(replacement, cache);
}

// What every rank tells the others; sent as bytes.
struct Attachments::Facts {
  Segment segment;  // 0: none
  std::uint64_t malformed;
  std::uint64_t probe_address;  // a word of private memory, to try it on
  std::uint64_t probe_value;
  std::uint64_t failed;  // where its flag is, an offset in its arena
};

std::unique_ptr<Attachments> Attachments::create(node::Team& team, std::string& reason) {
  std::uint64_t word =
      static_cast<std::uint64_t>(os::steady_ns()) ^ reinterpret_cast<std::uintptr_t>(&word);
  Facts own{0, 0, reinterpret_cast<std::uintptr_t>(&word), word, 0};
  std::unique_ptr<Attachments> result;
  // No exception before all have spoken: a rank that failed alone would leave the others waiting.
  try {
    const bool allowed = environment_allows();
    environment_capacity();
    if (!allowed) reason = "ROPEWALK_XPMEM is off";
    if (allowed) own.segment = process_cache().provider().own_segment(reason);
    if (own.segment != 0) {
      result.reset(new Attachments);
      own.failed = Arena::process().offset(result->failed_);
    }
  } catch (const Error& error) {
    reason = error.what();
    own.segment = 0;
    own.malformed = error.code() == ErrorCode::argument ? 1 : 0;
  }
  std::vector<Facts> facts(static_cast<std::size_t>(team.size()));
  mpi::all_gather(&own, facts.data(), sizeof own, team.comm());
  bool all = true;
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    const std::string there = "on rank " + std::to_string(rank);
    if (facts[rank].malformed != 0) {
      if (own.malformed == 0) reason = "ROPEWALK_ variables: malformed " + there;
      throw Error(ErrorCode::argument, reason);
    }
    if (facts[rank].segment == 0 && reason.empty()) reason = "not available " + there;
    all = all && facts[rank].segment != 0;
  }
  if (!all) return nullptr;
  if (node::all_agree(team.comm(), result->open(team, facts))) return result;
  reason = "ranks are not allowed to attach each other's memory";
  return nullptr;
}

Attachments::Attachments()
    : cache_(process_cache()),
      failed_(new (Arena::process().allocate(node::flag_stride, node::flag_stride))
                  std::atomic<std::uint64_t>(0)) {}

Attachments::~Attachments() {
  end_call();
  for (const Segment segment : segments_) cache_.close(segment);
  Arena::process().deallocate(failed_);
}

bool Attachments::open(node::Team& team, const std::vector<Facts>& facts) {
  pinned_.reserve(2 * facts.size());  // of each rank a send and a receive buffer
  for (const Facts& rank : facts) {
    const int peer = static_cast<int>(segments_.size());
    if (!cache_.open(rank.segment)) return false;
    segments_.push_back(rank.segment);
    failed_of_.push_back(
        reinterpret_cast<const std::atomic<std::uint64_t>*>(team.base(peer) + rank.failed));
    if (!probe(peer, rank)) return false;
  }
  return true;
}

// Whether the segment is what its rank says, and can be read.
bool Attachments::probe(int peer, const Facts& facts) {
  const std::byte* word = attach(peer, facts.probe_address, sizeof facts.probe_value);
  const bool same =
      word != nullptr && std::memcmp(word, &facts.probe_value, sizeof facts.probe_value) == 0;
  end_call();
  return same;
}

std::byte* Attachments::attach(int peer, std::uint64_t address, std::size_t bytes) {
  const auto [local, entry] =
      cache_.acquire(segments_[static_cast<std::size_t>(peer)], address, bytes);
  if (local != nullptr) pinned_.push_back(entry);
  return local;
}

void Attachments::end_call() noexcept {
  if (pinned_.empty()) return;
  cache_.release(pinned_);
  pinned_.clear();
}

void Attachments::fail(std::uint64_t phase) noexcept {
  failed_->store(phase, std::memory_order_relaxed);
}

// A rank that failed in this phase may have failed in a later one by now: that counts, so that no
// failure is lost. Relaxed: written before the release of the phase that was waited for.
int Attachments::failed_rank(std::uint64_t phase) const noexcept {
  for (std::size_t rank = 0; rank < failed_of_.size(); ++rank) {
    if (failed_of_[rank]->load(std::memory_order_relaxed) >= phase) return static_cast<int>(rank);
  }
  return -1;
}

}  // namespace ropewalk::channel
