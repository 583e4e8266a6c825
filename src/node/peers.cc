#include "node/peers.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>

#include "node/handover.hpp"
#include "node/node_number.hpp"
#include "os/pidfd.hpp"
#include "ropewalk/memory.hpp"
#include "topology/machine.hpp"

namespace ropewalk::node {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

// One entry a process, for all teams, which stays mapped until the process is dead: the next team
// will want it, and MPIs that watch mmap keep books on every mapping. Keyed by the memfd: its inode
// is unique while anybody holds it.
struct Registry {
  std::mutex mutex;
  std::map<std::uint64_t, std::shared_ptr<Peer>> peers;
};

// Never destroyed: teams may be freed after static destructors have run.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

std::uint64_t inode(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

// Maps the whole reserved range: pages beyond the end of the memfd appear when the owner grows it.
// The address agrees with the file in its last 21 bits, so that 2 MiB pages are mapped as such.
std::byte* map_arena(int descriptor, std::size_t bytes) {
  void* range = mmap(nullptr, bytes + huge_page, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<std::uintptr_t>(range);
  const std::uintptr_t base = (start + huge_page - 1) & ~(huge_page - 1);
  if (base > start) munmap(range, base - start);
  if (start + huge_page > base) {
    munmap(reinterpret_cast<void*>(base + bytes), start + huge_page - base);
  }
  void* address = reinterpret_cast<void*>(base);
  if (mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
           descriptor, 0) == MAP_FAILED) {
    munmap(address, bytes);
    return nullptr;
  }
  madvise(address, bytes,
          MADV_HUGEPAGE);  // a wish: refused for memfds of the pool, which need none
  madvise(address, bytes, MADV_DONTFORK);  // a child has no business in other ranks' memory
  return static_cast<std::byte*>(address);
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
  const auto found = known.peers.find(facts.arena_inode);
  return found == known.peers.end() ? nullptr : found->second;
}

void remember(const RankFacts& facts, const std::shared_ptr<Peer>& peer) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  // What a team still holds stays its own.
  std::erase_if(known.peers, [](const auto& entry) { return is_dead(*entry.second); });
  known.peers[facts.arena_inode] = peer;
}

std::shared_ptr<Peer> map_peer(const RankFacts& facts, os::Descriptor pidfd,
                               const os::Descriptor& arena) {
  if (arena.get() < 0 || inode(arena.get()) != facts.arena_inode) return nullptr;
  auto peer = std::make_shared<Peer>();
  peer->process = facts.process;
  peer->pidfd = std::move(pidfd);
  peer->base = map_arena(arena.get(), facts.arena_bytes);
  peer->bytes = facts.arena_bytes;
  if (peer->base == nullptr) return nullptr;
  remember(facts, peer);
  return peer;
}

bool is_self(const RankFacts& facts) {
  return facts.process == getpid() && facts.arena_inode == inode(Arena::process().descriptor());
}

// What this rank can get without anybody's help; null where it cannot.
std::shared_ptr<Peer> take_peer(const RankFacts& facts) {
  if (is_self(facts)) return self();
  if (auto known = known_peer(facts)) return known;
  os::Descriptor pidfd = os::open_pidfd(facts.process);
  if (pidfd.get() < 0) return nullptr;
  const os::Descriptor arena = os::take_descriptor(pidfd, facts.arena);
  return map_peer(facts, std::move(pidfd), arena);
}

}  // namespace

Peer::~Peer() {
  if (!self && base != nullptr) munmap(base, bytes);
}

RankFacts own_facts(const void* control, const std::uint64_t* probe) {
  Arena& arena = Arena::process();
  RankFacts facts{};
  const std::string node = node_name();
  std::memcpy(facts.node, node.data(), std::min(node.size(), sizeof facts.node - 1));
  facts.process = getpid();
  facts.arena = arena.descriptor();
  facts.arena_inode = inode(arena.descriptor());
  facts.arena_bytes = arena.reserved_bytes();
  facts.arena_base = reinterpret_cast<std::uintptr_t>(arena.base());
  facts.control = arena.offset(control);
  facts.probe_address = reinterpret_cast<std::uintptr_t>(probe);
  facts.probe_value = *probe;
  add_cores(facts);
  return facts;
}

void add_cores(RankFacts& facts) {
  const topology::UsableCpus usable = topology::usable_cpus();
  facts.quota_cores = usable.quota ? std::max(1, static_cast<int>(*usable.quota)) : 0;
  for (const int cpu : usable.cpus) {
    const auto word = static_cast<std::size_t>(cpu) / 64;
    if (word < std::size(facts.cpus)) facts.cpus[word] |= std::uint64_t{1} << cpu % 64;
  }
}

std::vector<std::shared_ptr<Peer>> map_peers(mpi::Comm comm, std::span<const RankFacts> facts,
                                             std::string& reason) {
  std::vector<std::shared_ptr<Peer>> peers;
  bool all = true;
  for (const RankFacts& rank : facts) {
    peers.push_back(take_peer(rank));
    all = all && peers.back() != nullptr;
  }
  if (all_agree(comm, all)) return peers;
  std::vector<os::Descriptor> arenas = swap_descriptors(comm, Arena::process().descriptor(), facts);
  all = !arenas.empty();
  for (std::size_t rank = 0; all && rank < facts.size(); ++rank) {
    if (peers[rank] != nullptr) continue;
    peers[rank] = map_peer(facts[rank], os::open_pidfd(facts[rank].process), arenas[rank]);
    all = peers[rank] != nullptr;
  }
  if (all_agree(comm, all)) return peers;
  reason =
      "ranks cannot map each other's arenas: neither pidfd_getfd nor abstract sockets work here";
  return {};
}

bool same_node(std::span<const RankFacts> facts) {
  for (const RankFacts& rank : facts) {
    if (std::strncmp(rank.node, facts.front().node, sizeof rank.node) != 0) return false;
  }
  return true;
}

int cores_of(std::span<const RankFacts> facts) {
  int cores = 0;
  for (std::size_t word = 0; word < std::size(facts.front().cpus); ++word) {
    std::uint64_t any = 0;
    for (const RankFacts& rank : facts) any |= rank.cpus[word];
    cores += std::popcount(any);
  }
  for (const RankFacts& rank : facts) {
    if (rank.quota_cores > 0) cores = std::min(cores, static_cast<int>(rank.quota_cores));
  }
  return cores;
}

bool can_read(std::span<const RankFacts> facts) {
  for (const RankFacts& rank : facts) {
    std::uint64_t value = 0;
    iovec to{&value, sizeof value};
    iovec from{reinterpret_cast<void*>(rank.probe_address), sizeof value};
    if (process_vm_readv(rank.process, &to, 1, &from, 1, 0) != sizeof value ||
        value != rank.probe_value) {
      return false;
    }
  }
  return true;
}

bool is_dead(const Peer& peer) noexcept {
  return !peer.self && peer.pidfd && os::is_dead(peer.pidfd);
}

bool all_agree(mpi::Comm comm, bool value) {
  std::int64_t agreed = value ? 1 : 0;
  mpi::all_reduce(std::span(&agreed, 1), mpi::Combine::min, comm);
  return agreed != 0;
}

}  // namespace ropewalk::node
