// This file has the layers below the team, reduced to what the model needs: one process with an
// arena for each rank, an MPI for the set-up only, and copies that the model sees.
#include <unistd.h>

#include <cstring>

#include "collectives/engine.hpp"
#include "kernels/kernels.hpp"
#include "model/model.hpp"
#include "mpi/collectively.hpp"
#include "mpi/mpi.hpp"
#include "mpi/progress.hpp"
#include "node/peers.hpp"
#include "node/reclamation.hpp"
#include "ropewalk/memory.hpp"

extern "C" void* watched_memcpy(void* to, const void* from, std::size_t bytes) noexcept {
  ropewalk::model::read(from, bytes);
  ropewalk::model::write(to, bytes);
  return std::memcpy(to, from, bytes);
}

namespace ropewalk {

// ---- the arena of the rank that runs

struct Arena::State {};
Arena::Arena(const MemoryOptions& /*options*/) {}
Arena::~Arena() = default;
Arena& Arena::process() {
  static Arena arena;
  return arena;
}
void* Arena::allocate(std::size_t bytes, std::size_t alignment) {
  void* memory = model::allocate(bytes, alignment);
  if (memory == nullptr) throw Error(ErrorCode::memory, "model::arena_bytes: too few");
  return memory;
}
void Arena::deallocate(void* address) noexcept { model::deallocate(address); }
bool Arena::contains(const void* address, std::size_t /*bytes*/) const noexcept {
  const auto* at = static_cast<const std::byte*>(address);
  const std::byte* base = model::arena(model::rank());
  return at >= base && at < base + model::arena_bytes;
}
void Arena::note_communicated(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
void Arena::make_huge(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
std::size_t Arena::offset(const void* address) const noexcept {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) -
                                  model::arena(model::rank()));
}

// ---- MPI: Team::create is called for one rank after the other

namespace mpi {

int rank(Comm /*comm*/) { return model::rank(); }
int size(Comm /*comm*/) { return model::ranks(); }
Comm comm_null() { return {}; }
Comm usable(Comm comm) { return comm; }
int any_source() { return -1; }
int any_tag() { return -1; }
void progress() {}
void progress_also(void (* /*look*/)() noexcept) noexcept {}
void look_also() noexcept {}
bool true_on_all(Comm /*comm*/, bool value) { return value; }
bool one_sided_expected() noexcept { return false; }
// All ranks make the same team at the same place of their arenas, so their facts are alike.
void all_gather(const void* send, void* receive, std::size_t bytes, Comm /*comm*/) {
  for (int rank = 0; rank < model::ranks(); ++rank) {
    std::memcpy(static_cast<std::byte*>(receive) + static_cast<std::size_t>(rank) * bytes, send,
                bytes);
  }
}

}  // namespace mpi

namespace node {

Peer::~Peer() = default;
RankFacts own_facts(const void* control, const std::uint64_t* /*probe*/) {
  RankFacts facts{};
  facts.control = Arena::process().offset(control);
  return facts;
}
std::vector<std::shared_ptr<Peer>> map_peers(mpi::Comm /*comm*/, std::span<const RankFacts> facts,
                                             std::string& /*reason*/) {
  std::vector<std::shared_ptr<Peer>> peers;
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    peers.push_back(std::make_shared<Peer>());
    peers.back()->process = getpid();
    peers.back()->base = model::arena(static_cast<int>(rank));
  }
  return peers;
}
bool same_node(std::span<const RankFacts> /*facts*/) { return true; }
int cores_of(std::span<const RankFacts> facts) { return static_cast<int>(facts.size()); }
bool can_read(std::span<const RankFacts> /*facts*/) { return false; }
bool is_dead(const Peer& /*peer*/) noexcept { return false; }
bool is_stopped(const Peer& /*peer*/) noexcept { return false; }
void reclaim_later(TeamMemory /*memory*/) noexcept {}
void reclaim() noexcept {}

}  // namespace node

// ---- kernels

namespace kernels {

void copy(void* to, const void* from, std::size_t bytes, Stores /*stores*/) {
  watched_memcpy(to, from, bytes);
}
void copy(void* const* outputs, int output_count, const void* from, std::size_t bytes,
          Stores stores) {
  for (int output = 0; output < output_count; ++output) copy(outputs[output], from, bytes, stores);
}

}  // namespace kernels

namespace collectives {

// Sums of std::uint64_t.
void Operation::combine(std::span<void* const> outputs, std::span<const void* const> inputs,
                        std::size_t count, kernels::Stores /*stores*/) const {
  const std::size_t bytes = count * sizeof(std::uint64_t);
  for (const void* input : inputs) model::read(input, bytes);
  for (void* output : outputs) model::write(output, bytes);
  for (std::size_t index = 0; index < count; ++index) {
    std::uint64_t sum = 0;
    for (const void* input : inputs) sum += static_cast<const std::uint64_t*>(input)[index];
    for (void* output : outputs) static_cast<std::uint64_t*>(output)[index] = sum;
  }
}
std::uint32_t Operation::code() const noexcept { return 1; }

}  // namespace collectives
}  // namespace ropewalk
