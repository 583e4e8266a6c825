#include "message_peers.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string>

#include "collectives/nodes/nodes.hpp"
#include "collectives/state.hpp"
#include "communicators.hpp"
#include "datatypes.hpp"
#include "devices.hpp"
#include "local_mpi.hpp"
#include "message_lock.hpp"
#include "message_mpi.hpp"
#include "messages.hpp"
#include "mpi/attributes.hpp"
#include "mpi/collectively.hpp"
#include "mpi/progress.hpp"
#include "never_destroyed.hpp"
#include "node/monitored_process.hpp"
#include "pending.hpp"
#include "promise.hpp"
#include "ropewalk/memory.hpp"
#include "settings/value.hpp"
#include "start.hpp"
#include "statistics.hpp"

namespace ropewalk::preload::messages {

namespace {
NeverDestroyed<MessageRanks> the_ranks;
NeverDestroyed<std::recursive_mutex> the_mutex;
}  // namespace
MessageRanks& ranks = the_ranks.value;
std::recursive_mutex& message_mutex = the_mutex.value;

bool wanted() noexcept {
  const settings::Value value = settings::read(settings::Id::messages);
  return !value.is("off") && !value.malformed;
}

namespace {

// Says why this process cannot promise, as far as is known before MPI_Init has told of threads.
std::string obstacle() noexcept {
  try {
    return obstacle_to_promise();
  } catch (...) {
    return "no memory";
  }
}
std::string obstacle_after_init() noexcept {
  try {
    return ranks.threads ? obstacle_to_lock() : obstacle_without_lock();
  } catch (...) {
    return "no memory";
  }
}

// Each rank tells the others of its node these facts, which are sent as bytes.
struct Facts {
  std::int64_t promises;
  std::int64_t world_rank;
  std::int64_t team_rank;  // in the team of the node's ranks
  Key key;
  std::uint64_t inode;
  std::uint64_t slots;  // offset in its arena, as is the next
  std::uint64_t notes;
  std::uint64_t slot_count;
  std::uint64_t least_bytes;
};

void make_slots() {
  Arena& arena = Arena::process();
  void* memory = arena.allocate(sizeof(EnvelopeSlot) * ranks.limits.slots, alignof(EnvelopeSlot));
  ranks.slots = static_cast<EnvelopeSlot*>(memory);
  for (std::size_t i = 0; i < ranks.limits.slots; ++i) new (ranks.slots + i) EnvelopeSlot;
  ranks.notes = new (arena.allocate(sizeof(ReceiverNotes), alignof(ReceiverNotes))) ReceiverNotes;
  struct stat file {};
  if (fstat(arena.descriptor(), &file) == 0) ranks.inode = file.st_ino;
}

// Returns what this rank promises. Where it lacks anything, it promises nothing.
Facts own_facts(const node::Team& team) noexcept {
  Facts facts{};
  facts.world_rank = mpi::rank(mpi::comm_world());
  facts.team_rank = team.rank();
  try {
    if (!ranks.understands) note_promise("MPI_Init was called by its PMPI name or by a pointer");
    // Objects may have been loaded since MPI_Init.
    std::string reason = ranks.understands ? obstacle() : "";
    if (ranks.understands && reason.empty()) reason = obstacle_after_init();
    if (!reason.empty()) note_promise(reason);
    if (!ranks.understands || !reason.empty()) return facts;
    make_slots();
    ranks.peers.resize(static_cast<std::size_t>(team.size()));
    ranks.key = node::random_id().words;
    facts.promises = 1;
    facts.key = ranks.key;
    facts.inode = ranks.inode;
    facts.slots = Arena::process().offset(ranks.slots);
    facts.notes = Arena::process().offset(ranks.notes);
    facts.slot_count = ranks.limits.slots;
    facts.least_bytes = ranks.limits.least_bytes;
  } catch (...) {  // there is no memory
    facts.promises = 0;
  }
  return facts;
}

void note(const Facts& facts, int place, const std::shared_ptr<node::Peer>& process) {
  MessagePeer& peer = ranks.peers[static_cast<std::size_t>(place)];
  peer.process = process;
  peer.place = place;
  peer.world_rank = static_cast<int>(facts.world_rank);
  peer.promised = facts.promises != 0 && !process->self;
  peer.key = facts.key;
  peer.inode = facts.inode;
  peer.slots = reinterpret_cast<EnvelopeSlot*>(process->base + facts.slots);
  peer.notes = reinterpret_cast<const ReceiverNotes*>(process->base + facts.notes);
  peer.slot_count = facts.slot_count;
  peer.least_bytes = facts.least_bytes;
}

bool has_the_world(Collectives& team) {
  const collectives::Engine* engine = team.state().backend->engine();
  return engine != nullptr && team.size() == mpi::size(mpi::comm_world());
}

// From here on this rank takes descriptors of those that promise.
void take_from(const std::vector<Facts>& all, node::Team& node) {
  for (int place = 0; place < node.size(); ++place) {
    const Facts& facts = all[static_cast<std::size_t>(place)];
    note(facts, place, node.peer(static_cast<int>(facts.team_rank)).shared_from_this());
  }
  const MessageLock lock;  // what a probe or a receive does next, it does by the new state
  ranks.ready = true;
  mpi::progress_also(&look_in_collectives);
}

// Exchanges what the ranks of this node promise, and notes it. Ranks of other nodes split the
// communicator as well. `all` has room for the facts of the node's ranks.
void come_together(Collectives& team, mpi::Comm comm, std::vector<Facts>& all) {
  collectives::Engine& engine = *team.state().backend->engine();
  const collectives::nodes::Nodes* nodes = team.state().backend->hierarchy();
  node::Team& node = engine.team();
  ranks.crowded = node.waits().crowded();
  ranks.over_nodes = nodes != nullptr;
  ranks.streaming_bytes = engine.limits().streaming_bytes;
  const bool alone = node.size() == 1;
  const int own_node = nodes == nullptr ? 0 : nodes->layout().node;
  const int color = alone ? mpi::undefined() : own_node;
  const bool split = mpi::try_split(comm, color, mpi::rank(mpi::comm_world()), ranks.comm);
  if (!split || alone) return;
  mpi::return_errors(ranks.comm);
  ranks.place = mpi::rank(ranks.comm);
  const Facts own = own_facts(node);
  mpi::all_gather(&own, all.data(), sizeof own, ranks.comm);
  if (own.promises != 0) take_from(all, node);
  // Another thread of a rank may receive already what this one is about to send.
  mpi::barrier(ranks.comm);
  ranks.sends = own.promises != 0;
}

// Returns the place of a rank of MPI_COMM_WORLD, or -1 where it is on another node.
int place_of(int world_rank) noexcept {
  const auto found =
      std::ranges::lower_bound(ranks.peers, world_rank, {}, &MessagePeer::world_rank);
  return found != ranks.peers.end() && found->world_rank == world_rank ? found->place : -1;
}

std::vector<int> places_of(mpi::Comm comm) {
  std::vector<int> places = ranks_in_world(comm);
  for (int& rank : places) rank = place_of(rank);
  return places;
}

bool ends_with_self = false;

// The attributes of MPI_COMM_SELF are deleted in the reverse order in which they were set, at the
// beginning of MPI_Finalize (MPI 4.1, 11.2.4): this one, set in MPI_Init, is the last.
void end_with_self() {
  const auto on_end = [](void*) noexcept {
    end();
    end_serving();
  };
  const mpi::Keyval keyval = mpi::create_keyval(on_end);
  mpi::set_attribute(mpi::comm_self(), keyval, nullptr);
  ends_with_self = true;
}

}  // namespace

bool load_self() noexcept {
  static bool loaded = false;
  try {
    if (loaded || !load_message_functions()) return loaded;
    ranks.self = mpi::split(mpi::comm_self(), 0, 0);
    mpi::return_errors(ranks.self);
    ranks.last_tag = mpi::tag_upper_bound(ranks.self);
    return loaded = true;
  } catch (...) {  // MPI has no communicator for it
    return false;
  }
}

void begin_finalize() noexcept {
  if (!ends_with_self) end();
}
bool go_on() noexcept { return ends_with_self && !ranks.ended; }

void before_init() noexcept {
  if (!wanted()) return;
  const std::string reason = obstacle();
  if (!reason.empty()) note_promise(reason);
  ranks.understands = reason.empty();
}

void after_init() noexcept {
  try {
    ranks.threads = mpi::thread_level() == mpi::ThreadLevel::multiple;
    if (!wanted()) return;
    const std::string reason = obstacle_after_init();
    if (!reason.empty()) note_promise(reason);
    ranks.understands = ranks.understands && reason.empty() && load_message_functions();
    if (!ranks.understands) return;
    ranks.limits = tuning::envelope_limits();
    if (!load_self()) return static_cast<void>(ranks.understands = false);
    take_messages();
    end_with_self();
  } catch (...) {
    ranks.understands = false;
  }
}

Meeting own_meeting() noexcept {
  if (!wanted()) return Meeting::never;
  const bool threads = mpi::thread_level() == mpi::ThreadLevel::multiple;
  return threads ? Meeting::world_alone : Meeting::any_team;
}

void meet(Collectives& team, mpi::Comm comm, Meeting meeting) {
  static bool met = false;
  const bool here = meeting == Meeting::any_team ||
                    (meeting == Meeting::world_alone && comm == mpi::comm_world());
  if (!here || met || !has_the_world(team)) return;
  met = true;
  std::vector<Facts> all;
  bool room = true;
  try {
    all.resize(static_cast<std::size_t>(team.state().backend->engine()->size()));
  } catch (const std::bad_alloc&) {
    room = false;
  }
  if (mpi::true_on_all(comm, room)) come_together(team, comm, all);
  ranks.met = true;
}

bool may_have_devices() noexcept {
  if (ranks.ready) return false;
  try {
    return !device_memory().empty();
  } catch (...) {  // no memory
    return true;
  }
}

const MessagePeer* peer_of(Word word, int rank) noexcept {
  if (!ranks.ready || rank < 0) return nullptr;
  CommunicatorEntry* entry = entry_as_it_is(clean(word));
  if (entry == nullptr || rank >= entry->size) return nullptr;
  const Reason reason = entry->reason;
  const bool foreign = reason == Reason::intercommunicator || reason == Reason::other_world;
  // The entry of those that there is no memory for stands for several communicators.
  if (foreign || reason == Reason::no_memory) return nullptr;
  try {
    if (entry->message_places.empty()) entry->message_places = places_of({clean(word)});
  } catch (...) {
    return nullptr;
  }
  const int place = entry->message_places[static_cast<std::size_t>(rank)];
  if (place < 0) return nullptr;
  const MessagePeer& peer = ranks.peers[static_cast<std::size_t>(place)];
  return peer.promised ? &peer : nullptr;
}

bool sends_here(const MessagePeer& peer) noexcept {
  for (std::size_t i = 0; i < peer.slot_count; ++i) {
    const EnvelopeSlot& slot = peer.slots[i];
    // This acquire pairs with the release in arm(), which comes before MPI sends the descriptor.
    const State state = slot.state.load(std::memory_order_acquire);
    const bool under_way = state == State::armed || state == State::moving || state == State::kept;
    if (!under_way) continue;
    if (slot.destination.load(std::memory_order_relaxed) == ranks.place) return true;
  }
  return false;
}

const MessagePeer* sender_of(const MessageDescriptor& descriptor) noexcept {
  if (!ranks.ready || descriptor.key != ranks.key) return nullptr;
  if (descriptor.checksum != checksum_of(descriptor)) return nullptr;
  if (descriptor.sender >= ranks.peers.size()) return nullptr;
  const MessagePeer& peer = ranks.peers[descriptor.sender];
  if (!peer.promised || peer.inode != descriptor.inode) return nullptr;
  if (descriptor.slot >= peer.slot_count) return nullptr;
  const EnvelopeSlot& slot = peer.slots[descriptor.slot];
  // This acquire pairs with the release in arm().
  const State state = slot.state.load(std::memory_order_acquire);
  const bool under_way = state == State::armed || state == State::moving || state == State::kept;
  const bool same = slot.serial == descriptor.serial && slot.length == descriptor.length &&
                    slot.destination.load(std::memory_order_relaxed) == ranks.place;
  return under_way && same ? &peer : nullptr;
}

}  // namespace ropewalk::preload::messages
