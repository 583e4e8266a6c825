// Other ranks' processes: their arenas as this process maps them, and whether they live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/mpi.hpp"
#include "os/fork.hpp"
#include "os/pidfd.hpp"

namespace ropewalk::node {

// What every rank tells the others when a team is made; sent as bytes.
struct RankFacts {
  char node[128];              // node_name(), cut to fit
  std::int32_t process;        // pid, meaningful within one pid namespace
  std::int32_t arena;          // descriptor number in that process
  std::uint64_t start;         // when the process began, as it sees it: numbers are used again
  std::uint64_t arena_device;  // which file the arena is
  std::uint64_t arena_inode;
  std::uint64_t arena_bytes;    // reserved range
  std::uint64_t arena_base;     // address in its own process
  std::uint64_t control;        // offset of its control block
  std::uint64_t probe_address;  // a word of its private memory, to try CMA on
  std::uint64_t probe_value;
  std::uint64_t cpus[16];    // affinity mask, a bit a CPU
  std::int32_t quota_cores;  // that the cgroup pays for; 0: no quota
  std::int64_t domain;       // of caches (domains.hpp)
  std::int64_t malformed;    // 1: a variable of its environment is
};

// A peer is a process of this node. It is mapped once, however many teams meet it.
struct Peer : std::enable_shared_from_this<Peer> {
  ~Peer();
  os::ForkCheck fork;  // the process that has mapped it: a child does not inherit the mapping
  std::int32_t process = 0;
  bool self = false;
  os::ProcessWatch life;      // none of this process itself
  std::byte* base = nullptr;  // of its arena
  std::size_t bytes = 0;  // of its reserved range; pages beyond its committed part do not exist yet
};

// Returns the rank's own facts; `control` lies in the arena of the process.
RankFacts own_facts(const void* control, const std::uint64_t* probe);

// Collective over `comm`: maps every rank's arena, by pidfd_getfd where all ranks may, else by
// descriptors sent over abstract sockets. The result is empty on every rank when that fails on one,
// or when the arenas would take more than half of a rank's limit of addresses (RLIMIT_AS): nothing
// is then left mapped, and `reason` says why.
std::vector<std::shared_ptr<Peer>> map_peers(mpi::Comm comm, std::span<const RankFacts> facts,
                                             std::string& reason);

// How the reason begins where it is a limit of the address space.
inline constexpr std::string_view addresses_limited = "address space limited";

bool same_node(std::span<const RankFacts> facts);

// Sets the cores that this rank may run on.
void add_cores(RankFacts& facts);

// How many cores the ranks may use together: with fewer cores than ranks, a waiting rank must yield
// its core. From shared facts alone, since algorithms are chosen by it.
int cores_of(std::span<const RankFacts> facts);

// Whether this rank can read the probe words of all others with process_vm_readv.
bool can_read(std::span<const RankFacts> facts);

// Returns true when the process has ended.
bool is_dead(const Peer& peer) noexcept;

// Returns true while the process is stopped, as by SIGSTOP or a debugger.
bool is_stopped(const Peer& peer) noexcept;

}  // namespace ropewalk::node
