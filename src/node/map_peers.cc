// This file maps the arenas of other ranks, each once in this process.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "node/handover.hpp"
#include "node/peers.hpp"
#include "os/mapping.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::node {
namespace {

// This identifies a process and the file of its arena. Both numbers are used again: a file on
// another file system may even have the same one at the same time.
using Identity = std::tuple<std::uint64_t, std::uint64_t, std::int32_t, std::uint64_t>;

Identity identity_of(const RankFacts& facts) {
  return {facts.arena_device, facts.arena_inode, facts.process, facts.start};
}

// There is one entry for each process, for all teams. It stays mapped until the process is dead,
// because the next team will want it, and because MPIs that watch mmap keep books on every mapping.
// It has only processes with which a team was made. A child of fork does not have the mappings, so
// it begins without entries.
struct Registry {
  std::mutex mutex;
  std::map<Identity, std::shared_ptr<Peer>> peers;
};

constinit os::PerProcess<Registry> registry_of_process;

Registry& registry() { return registry_of_process.get(); }

bool is_arena(const os::Descriptor& file, const RankFacts& facts) {
  struct stat status {};
  return file && fstat(file.get(), &status) == 0 && status.st_dev == facts.arena_device &&
         status.st_ino == facts.arena_inode;
}

bool is_self(const RankFacts& facts) {
  return facts.process == getpid() &&
         facts.arena_base == reinterpret_cast<std::uintptr_t>(Arena::process().base());
}

// Maps the whole reserved range: pages beyond the end of the memfd appear when the owner grows it.
// The address agrees with the file in its last 21 bits, so that 2 MiB pages are mapped as such.
std::byte* map_arena(int descriptor, std::size_t bytes) {
  os::Mapping range = os::reserve_range(bytes, os::huge_2m);
  if (!range) return nullptr;
  // Without a reservation: a pool of huge pages would have to hold the whole range twice.
  if (mmap(range.data(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
           descriptor, 0) == MAP_FAILED) {
    return nullptr;
  }
  os::advise_huge(range.data(), bytes);  // a wish: memfds of the pool need none
  // Other ranks' memory is no business of a child's, nor of this process's core dump, which would
  // hold that of the whole node.
  os::keep_from_children(range.data(), bytes);
  os::leave_out_of_core_dumps(range.data(), bytes);
  return range.release();
}

std::shared_ptr<Peer> self() {
  auto peer = std::make_shared<Peer>();
  peer->process = getpid();
  peer->self = true;
  peer->base = Arena::process().base();
  peer->bytes = Arena::process().reserved_bytes();
  return peer;
}

std::shared_ptr<Peer> known_peer(const RankFacts& facts) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  const auto found = known.peers.find(identity_of(facts));
  return found == known.peers.end() ? nullptr : found->second;
}

void remember(std::span<const RankFacts> facts, std::span<const std::shared_ptr<Peer>> peers) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  // What a team still holds stays its own.
  std::erase_if(known.peers, [](const auto& entry) { return is_dead(*entry.second); });
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    if (!peers[rank]->self) known.peers[identity_of(facts[rank])] = peers[rank];
  }
}

// What keeps ranks from a team; the worst comes first.
enum class Obstacle : std::int64_t { no_addresses, no_descriptor, none };

// The peers of one team to be, as far as this rank could map them.
struct Attempt {
  std::vector<std::shared_ptr<Peer>> peers;
  Obstacle obstacle = Obstacle::none;
  // Where addresses are short: bytes of arenas, and what there is for them.
  std::uint64_t needed = 0;
  std::uint64_t room = 0;
};

// Counts the bytes of arenas that are still to be mapped for this team.
std::uint64_t bytes_to_map(std::span<const RankFacts> facts) {
  std::uint64_t bytes = 0;
  for (const RankFacts& rank : facts) {
    if (!is_self(rank) && known_peer(rank) == nullptr) bytes += rank.arena_bytes;
  }
  return bytes;
}

// Counts the bytes of this process's own arena, and of those mapped for any team.
std::uint64_t bytes_of_arenas() {
  std::uint64_t bytes = Arena::process().reserved_bytes();
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  for (const auto& [identity, peer] : known.peers) bytes += peer->bytes;
  return bytes;
}

// Half of a limit, at most, is for arenas: the program needs the rest.
void check_room(std::span<const RankFacts> facts, Attempt& attempt) {
  const auto limit = os::address_limit();
  const std::uint64_t more = bytes_to_map(facts);
  if (!limit || more == 0) return;
  attempt.needed = bytes_of_arenas() + more;
  attempt.room = *limit / 2;
  if (attempt.needed > attempt.room) attempt.obstacle = Obstacle::no_addresses;
}

// The program has left less than that, or the processor has no more.
void refuse_mapping(std::span<const RankFacts> facts, Attempt& attempt) {
  constexpr std::uint64_t all_addresses = std::uint64_t{1} << 47;
  attempt.peers.clear();
  attempt.obstacle = Obstacle::no_addresses;
  attempt.needed = bytes_to_map(facts);
  const std::uint64_t limit = os::address_limit().value_or(all_addresses);
  attempt.room = limit - std::min(limit, os::mapped_bytes());
}

// Returns null where there is no file or no room for it; the attempt then knows which.
std::shared_ptr<Peer> map_peer(const RankFacts& facts, os::Descriptor pidfd,
                               const os::Descriptor& arena, Attempt& attempt) {
  if (!is_arena(arena, facts)) {
    attempt.obstacle = Obstacle::no_descriptor;
    return nullptr;
  }
  auto peer = std::make_shared<Peer>();
  peer->process = facts.process;
  peer->life = os::ProcessWatch(facts.process, std::move(pidfd));
  peer->bytes = facts.arena_bytes;
  peer->base = map_arena(arena.get(), facts.arena_bytes);
  if (peer->base != nullptr) return peer;
  attempt.obstacle = Obstacle::no_addresses;
  return nullptr;
}

// What this rank can get without anybody's help.
std::shared_ptr<Peer> take_peer(const RankFacts& facts, Attempt& attempt) {
  if (is_self(facts)) return self();
  if (auto known = known_peer(facts)) return known;
  os::Descriptor pidfd = os::open_pidfd(facts.process);
  const os::Descriptor arena = os::take_descriptor(pidfd, facts.arena);
  return map_peer(facts, std::move(pidfd), arena, attempt);
}

void take_peers(std::span<const RankFacts> facts, Attempt& attempt) {
  attempt.peers.resize(facts.size());
  check_room(facts, attempt);
  if (attempt.obstacle == Obstacle::no_addresses) return;
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    attempt.peers[rank] = take_peer(facts[rank], attempt);
    if (attempt.obstacle == Obstacle::no_addresses) return refuse_mapping(facts, attempt);
  }
}

void receive_peers(mpi::Comm comm, std::span<const RankFacts> facts, Attempt& attempt) {
  const auto arenas = swap_descriptors(comm, Arena::process().descriptor(), facts);
  attempt.obstacle = arenas.empty() ? Obstacle::no_descriptor : Obstacle::none;
  for (std::size_t rank = 0; rank < arenas.size(); ++rank) {
    if (attempt.peers[rank] != nullptr) continue;
    attempt.peers[rank] =
        map_peer(facts[rank], os::open_pidfd(facts[rank].process), arenas[rank], attempt);
    if (attempt.obstacle == Obstacle::no_addresses) return refuse_mapping(facts, attempt);
  }
}

std::string text_of(std::int64_t needed, std::int64_t room) {
  return std::string(addresses_limited) + ": the arenas of the node's ranks take " +
         std::to_string(needed) + " bytes, and a rank has " + std::to_string(room) +
         " for them (half of `ulimit -v`, or what the program has left); set ROPEWALK_ARENA_BYTES "
         "lower on all ranks, or `ulimit -v unlimited`";
}

// Agrees on the worst obstacle of any rank, which is the same on all, with its reason.
Obstacle agree_on(mpi::Comm comm, const Attempt& attempt, std::string& reason) {
  const bool addresses = attempt.obstacle == Obstacle::no_addresses;
  std::array<std::int64_t, 3> worst{
      static_cast<std::int64_t>(attempt.obstacle),
      addresses ? -static_cast<std::int64_t>(attempt.needed) : 0,
      addresses ? static_cast<std::int64_t>(attempt.room) : INT64_MAX};
  mpi::all_reduce(worst, mpi::Combine::min, comm);
  const auto agreed = static_cast<Obstacle>(worst[0]);
  if (agreed == Obstacle::no_addresses) reason = text_of(-worst[1], worst[2]);
  if (agreed == Obstacle::no_descriptor) {
    reason =
        "ranks cannot map each other's arenas: neither pidfd_getfd nor abstract sockets work here";
  }
  return agreed;
}

}  // namespace

// In a child of fork something else may lie there by now.
Peer::~Peer() {
  if (!self && fork.same_process() && base != nullptr) munmap(base, bytes);
}

std::vector<std::shared_ptr<Peer>> map_peers(mpi::Comm comm, std::span<const RankFacts> facts,
                                             std::string& reason) {
  Attempt attempt;
  std::string refused;
  take_peers(facts, attempt);
  Obstacle found = agree_on(comm, attempt, refused);
  if (found == Obstacle::no_descriptor) {
    receive_peers(comm, facts, attempt);
    found = agree_on(comm, attempt, refused);
  }
  if (found != Obstacle::none) {
    reason = refused;
    return {};
  }
  remember(facts, attempt.peers);
  return std::move(attempt.peers);
}

}  // namespace ropewalk::node
