#include "node/team.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "mpi/collectively.hpp"
#include "node/peers.hpp"
#include "node/reclamation.hpp"
#include "os/clock.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::node {
namespace {

struct GiveBack {
  void operator()(Control* control) const noexcept { Arena::process().deallocate(control); }
};
using OwnControl = std::unique_ptr<Control, GiveBack>;

// Returns null where there is no memory, and throws nothing: a rank that failed alone would leave
// the others waiting for it.
OwnControl allocate_control(int ranks, std::string& reason) {
  try {
    const std::size_t bytes = Control::bytes_for(ranks);
    void* memory = Arena::process().allocate(bytes, flag_stride);
    std::memset(memory, 0, bytes);
    return OwnControl(new (memory) Control);
  } catch (const Error& error) {
    reason = error.what();
    return nullptr;
  }
}

// Collective. Each rank tells the others its own facts. Throws Error(argument) on every rank where
// a variable of one is malformed, but only after all have spoken, for the same reason.
std::vector<RankFacts> exchange_facts(mpi::Comm comm, const Control* control,
                                      const std::uint64_t* probe) {
  RankFacts own{};
  std::string malformed;
  try {
    own = own_facts(control, probe);
    own.domain = own_domain(mpi::rank(comm));
  } catch (const Error& error) {
    own.malformed = 1;
    malformed = error.what();
  }
  std::vector<RankFacts> facts(static_cast<std::size_t>(mpi::size(comm)));
  mpi::all_gather(&own, facts.data(), sizeof own, comm);
  if (std::ranges::any_of(facts, [](const RankFacts& rank) { return rank.malformed != 0; })) {
    throw Error(ErrorCode::argument,
                malformed.empty() ? "ROPEWALK_DOMAINS or ROPEWALK_NODES: malformed on another rank"
                                  : malformed);
  }
  return facts;
}

Domains domains_of(std::span<const RankFacts> facts) {
  std::vector<std::int64_t> numbers;
  for (const RankFacts& rank : facts) numbers.push_back(rank.domain);
  return group_by(numbers);
}

std::vector<std::byte*> bases_of(std::span<const std::shared_ptr<Peer>> peers) {
  std::vector<std::byte*> bases;
  for (const auto& peer : peers) bases.push_back(peer->base);
  return bases;
}

std::vector<Control*> controls_of(std::span<std::byte* const> bases,
                                  std::span<const RankFacts> facts) {
  std::vector<Control*> controls;
  for (std::size_t rank = 0; rank < bases.size(); ++rank) {
    controls.push_back(reinterpret_cast<Control*>(bases[rank] + facts[rank].control));
  }
  return controls;
}

}  // namespace

std::unique_ptr<Team> Team::create(mpi::Comm comm, std::string& reason) {
  reclaim();
  OwnControl own = allocate_control(mpi::size(comm), reason);
  if (!mpi::true_on_all(comm, own != nullptr)) {
    if (reason.empty()) reason = "another rank has no communication memory left";
    return nullptr;
  }
  std::uint64_t probe =
      static_cast<std::uint64_t>(os::steady_ns()) ^ reinterpret_cast<std::uintptr_t>(&probe);
  const std::vector<RankFacts> facts = exchange_facts(comm, own.get(), &probe);
  if (!same_node(facts)) {
    reason = "the ranks of the communicator are on several nodes";
    return nullptr;
  }
  Peers peers = map_peers(comm, facts, reason);
  if (peers.empty()) return nullptr;
  const bool cma = mpi::true_on_all(comm, can_read(facts));
  // From here on others may look at the block, whatever becomes of this rank's team.
  return std::unique_ptr<Team>(new Team(comm, own.release(), facts, std::move(peers), cma));
}

Team::Team(mpi::Comm comm, Control* own, std::span<const RankFacts> facts, Peers peers, bool cma)
    : comm_(comm),
      cma_(cma),
      cores_(cores_of(facts)),
      domains_(domains_of(facts)),
      peers_(std::move(peers)),
      bases_(bases_of(peers_)),
      controls_(controls_of(bases_, facts)),
      blocks_{mpi::rank(comm), own, controls_},
      waits_(controls_[0]->sleepers, peers_, cores_),
      slots_(blocks_, waits_),
      phases_(blocks_, waits_),
      staging_(blocks_, bases_),
      rooms_(blocks_, slots_, waits_) {}

Team::~Team() {
  // The others still share memory with the parent of this process, not with a child of fork.
  if (process_id(rank()) != getpid()) return;
  for (int peer = 0; peer < size(); ++peer) {
    // This is the last touch. Its release pairs with the acquire in reclamation.cc of that rank.
    if (peer != rank()) controls_[peer]->left(rank()).store(1, std::memory_order_release);
  }
  const auto [first_half, second_half] = rooms_.memory();
  const int own = rank();
  reclaim_later(
      {blocks_.own, own, std::move(peers_), {staging_.memory(), first_half, second_half}});
}

int Team::process_id(int rank) const noexcept { return peers_[rank]->process; }

}  // namespace ropewalk::node
