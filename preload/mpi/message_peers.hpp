// This file knows what this process has promised, and which processes have promised it the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "envelope.hpp"
#include "functions.hpp"
#include "node/peers.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::preload::messages {

// A rank of this node, which may be this one.
struct MessagePeer {
  std::shared_ptr<node::Peer> process;
  int world_rank = 0;
  int place = 0;  // its rank in ranks.comm
  bool promised = false;
  Key key{};
  std::uint64_t inode = 0;
  EnvelopeSlot* slots = nullptr;  // its slots, as this process maps them
  const ReceiverNotes* notes = nullptr;
  std::size_t slot_count = 0;
  std::size_t least_bytes = 0;
};

struct MessageRanks {
  std::atomic<bool> understands{false};  // this process takes all that it receives through us
  // This rank has promised, and the ranks of the node have told each other: it takes descriptors.
  std::atomic<bool> ready{false};
  std::atomic<bool> sends{false};  // so do the others: it may send some
  // Several threads may call MPI at the same time. One may probe, so that no other may wait in a
  // receive of MPI's: what it waits for may be in the stash by then. Each receive is posted first.
  bool threads = false;
  std::atomic<bool> met{false};      // the ranks have told each other what they promise
  std::atomic<bool> ended{false};    // MPI_Finalize has begun
  std::atomic<bool> crowded{false};  // more ranks than cores
  bool over_nodes = false;           // MPI_COMM_WORLD has ranks on other nodes
  int place = 0;                     // of this rank
  Key key{};                         // key of this process
  std::uint64_t inode = 0;           // inode of its arena
  EnvelopeSlot* slots = nullptr;
  ReceiverNotes* notes = nullptr;
  tuning::EnvelopeLimits limits{};
  std::size_t streaming_bytes = 0;
  std::vector<MessagePeer> peers;  // by place, which is the order of MPI_COMM_WORLD
  // This communicator is for acknowledgements. It has the ranks of MPI_COMM_WORLD that are on this
  // node, and nobody else's messages.
  mpi::Comm comm;
  mpi::Comm self;        // this process alone, for copies that MPI makes
  int last_tag = 32767;  // that MPI takes for it
};
extern MessageRanks& ranks;

// Makes `self`, and finds MPI's functions for messages. Local. Returns false where this process has
// none of them.
bool load_self() noexcept;

// MPI_Init must call these, the first before MPI's own initialization and the second after it, also
// where no messages are wanted: the table of requests has persistent collectives as well.
void before_init() noexcept;
void after_init() noexcept;

// Says that the program may have memory of devices, which this process cannot read. Such ranks
// never meet, so that no descriptor can come.
bool may_have_devices() noexcept;
// Says that no descriptor can come, for this reason or since the ranks have met in vain.
inline bool takes_none() noexcept { return !ranks.ready && (ranks.met || may_have_devices()); }

// Returns the process behind a rank of a communicator, or null unless a message may go to it
// through memory.
const MessagePeer* peer_of(Word comm, int rank) noexcept;
// Returns the sender of what was received, or null unless that is a descriptor that a rank has made
// for this process, and whose message is still under way.
const MessagePeer* sender_of(const MessageDescriptor&) noexcept;

// Says whether a message of this rank's is under way to this process.
bool sends_here(const MessagePeer&) noexcept;

// This process probes.
inline void note_probe() noexcept { ranks.notes->probes.store(true, std::memory_order_relaxed); }

inline kernels::Stores stores_for(std::size_t bytes) noexcept {
  return bytes >= ranks.streaming_bytes ? kernels::Stores::streaming : kernels::Stores::temporal;
}

}  // namespace ropewalk::preload::messages
