#include "channel/attachments.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "channel/registration_trace.hpp"
#include "channel/xpmem.hpp"
#include "mpi/collectively.hpp"
#include "node/peers.hpp"
#include "os/clock.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/memory.hpp"
#include "settings/value.hpp"

namespace ropewalk::channel {
namespace {

thread_local RegistrationCache* replacement = nullptr;

// Returns how many entries the cache may have.
std::size_t environment_capacity() {
  return static_cast<std::size_t>(settings::get(settings::Id::registrations).number);
}

// Whether private buffers may be attached.
bool environment_allows() { return !settings::get(settings::Id::xpmem).is("off"); }

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
};

std::unique_ptr<Attachments> Attachments::create(node::Team& team, std::string& reason) {
  std::uint64_t word =
      static_cast<std::uint64_t>(os::steady_ns()) ^ reinterpret_cast<std::uintptr_t>(&word);
  Facts own{0, 0, reinterpret_cast<std::uintptr_t>(&word), word};
  std::unique_ptr<Attachments> result;
  // No exception before all have spoken: a rank that failed alone would leave the others waiting.
  try {
    const bool allowed = environment_allows();
    environment_capacity();
    RegistrationTrace::begin_of_process();
    if (!allowed) reason = "ROPEWALK_XPMEM is off";
    if (allowed) own.segment = process_cache().provider().own_segment(reason);
    if (own.segment != 0) result.reset(new Attachments);
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
  if (mpi::true_on_all(team.comm(), result->open(facts))) return result;
  reason = "ranks are not allowed to attach each other's memory";
  return nullptr;
}

Attachments::Attachments() : cache_(process_cache()) {}

Attachments::~Attachments() {
  end_call();
  for (const Segment segment : segments_) cache_.close(segment);
}

bool Attachments::open(const std::vector<Facts>& facts) {
  pinned_.reserve(2 * facts.size());  // of each rank a send and a receive buffer
  for (const Facts& rank : facts) {
    const int peer = static_cast<int>(segments_.size());
    if (!cache_.open(rank.segment)) return false;
    segments_.push_back(rank.segment);
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

}  // namespace ropewalk::channel
