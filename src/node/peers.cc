#include "node/peers.hpp"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "node/node_number.hpp"
#include "ropewalk/memory.hpp"
#include "topology/machine.hpp"

namespace ropewalk::node {

RankFacts own_facts(const void* control, const std::uint64_t* probe) {
  Arena& arena = Arena::process();
  RankFacts facts{};
  const std::string node = node_name();
  std::memcpy(facts.node, node.data(), std::min(node.size(), sizeof facts.node - 1));
  facts.process = getpid();
  facts.start = os::start_of_process(facts.process);
  facts.arena = arena.descriptor();
  struct stat file {};
  if (fstat(facts.arena, &file) == 0) {
    facts.arena_device = file.st_dev;
    facts.arena_inode = file.st_ino;
  }
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

bool is_dead(const Peer& peer) noexcept { return !peer.self && peer.life.ended(); }

bool is_stopped(const Peer& peer) noexcept { return !peer.self && peer.life.stopped(); }

}  // namespace ropewalk::node
