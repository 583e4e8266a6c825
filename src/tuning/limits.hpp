// Limits as the algorithms hold them: values of rows (table.hpp), taken once when a communicator is
// made, so that a call only compares numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ropewalk::tuning {

// These are for the collectives among the ranks of one node. Figures and their origin stand in the
// table.
struct Limits {
  std::size_t one_shot_bytes;   // up to here payload goes through the slots
  std::size_t gathered_bytes;   // the same for the blocks of an allgather
  std::size_t rooted_bytes;     // the same where senders do not wait for their root
  std::size_t copied_bytes;     // private buffers up to here are copied beside the slots
  std::size_t piecewise_bytes;  // the same, for readers that follow piece by piece
  std::size_t alone_bytes;      // the same where one rank reads the copies of all others
  std::size_t piece_bytes;      // of the largest piece
  std::size_t pushed_bytes;     // private blocks from here on go into buffers that are mapped
  std::size_t streaming_bytes;  // from here on results are stored past the caches
  std::size_t two_level_bytes;  // from here on cache domains reduce among themselves first
  std::size_t chunk_bytes;      // of staging areas
  std::size_t cma_bytes;        // private buffers of this size and more are read by CMA
  std::size_t attach_bytes;     // and these are attached, where all ranks can
};

// These are for the copies of a halo's faces; each rank's own matter.
struct HaloLimits {
  std::size_t streaming_bytes;  // longer runs are stored past the caches, where faces do not fit
  std::size_t claimed_bytes;    // of faces that are claimed together
  // They are for faces in private memory: the kernel copies those of this size and more, all others
  // are staged.
  std::size_t kernel_bytes;              // on pages of 2 MiB
  std::size_t kernel_small_pages_bytes;  // on small ones
  std::size_t kernel_run_bytes;          // shorter runs, on average, are staged as well
};
// Throws Error(argument) as limits_for() does. Only what the kernel copies depends on the ranks of
// the node.
HaloLimits halo_limits(int ranks = 1, bool crowded = false);
// Bytes of an exchange for each thread that copies; `crowded`: the threads of the node's ranks are
// more than its CPUs. Throws likewise.
std::size_t halo_worker_bytes(bool crowded);

// These are for messages between two ranks of one node.
struct ChannelLimits {
  std::size_t slot_bytes;            // messages up to here are copied through slots
  std::size_t private_slot_bytes;    // the same for private memory
  std::size_t kernel_bytes;          // from here on the kernel copies private to private memory
  std::size_t both_bytes;            // from here on both ranks copy, where both can
  std::size_t threaded_bytes;        // from here on all threads of a rank copy
  std::size_t piece_bytes;           // least that one of two ranks copies at a time
  std::size_t pipeline_piece_bytes;  // of a pipeline
  std::size_t device_piece_bytes;    // of one from or to memory of a device
  std::size_t streaming_bytes;       // from here on messages are stored past the caches
  std::size_t by_kernel_bytes;       // the kernel copies private buffers from here on
  std::size_t attach_bytes;          // and these are attached, where all ranks can
  unsigned spins;                    // looks before a receive does anything else
  bool crowded;                      // the node has more ranks than cores
};
// Throws Error(argument) as limits_for() does.
ChannelLimits channel_limits(int ranks, bool crowded);

// The limits of messages of unchanged programs, whose envelopes go through MPI.
struct EnvelopeLimits {
  std::size_t least_bytes;   // from here on the data goes through memory
  std::size_t slots;         // messages under way, of one rank
  std::int64_t patience_ns;  // after which a sender that waits copies its data
  std::size_t kept_bytes;    // that are copied so, freely
};
// Throws Error(argument) as limits_for() does.
EnvelopeLimits envelope_limits();

// Returns what the profile says, else the defaults. `crowded` says that the node has more ranks
// than cores. Throws Error(argument), the same on all ranks, where the profile cannot be
// understood.
Limits limits_for(int ranks, bool crowded);

}  // namespace ropewalk::tuning
