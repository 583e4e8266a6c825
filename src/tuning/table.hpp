// The room of tuning: every size at which ropewalk goes another way, as one row of one table. A row
// says what the size decides, its default, where that comes from, and the machine it was measured
// on. Rooms below take their limits from here (limits.hpp) and hold no such number of their own.
//
// The room decides nothing by itself: it knows neither communicators nor messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ropewalk::tuning {

// The rows, in the order of the table.
enum class Id : std::uint8_t {
  // Collectives among the ranks of one node.
  node_inlined,
  node_inlined_allgather,
  node_inlined_rooted,
  node_copied,
  node_piecewise,
  node_piecewise_alone,
  node_piece,
  node_pushed,
  node_streaming,
  node_two_level,
  node_staging_chunk,
  node_cma,
  node_attach,
  // Collectives over several nodes.
  nodes_flat,
  nodes_ring,
  nodes_chain,
  nodes_slice,
  nodes_slices,
  nodes_least_message,
  nodes_most_message,
  nodes_broadcast_flat,
  nodes_broadcast_chain,
  nodes_broadcast_least_chunk,
  nodes_broadcast_most_chunk,
  nodes_allgather,
  nodes_allgather_leaders,
  nodes_reduce_scatter,
  nodes_alltoall,
  nodes_gather,
  nodes_scatter,
  nodes_rooted_flat,
  nodes_rooted_nodes,
  nodes_rooted_together,
  nodes_allgather_chunk,
  nodes_reduce_scatter_chunks,
  nodes_reduce_scatter_least_chunk,
  nodes_reduce_scatter_most_chunk,
  nodes_alltoall_together_block,
  nodes_alltoall_together,
  nodes_alltoall_copy,
  nodes_read,
  nodes_thread_block,
  nodes_thread_waking_blocks,
  nodes_thread_alone_blocks,
  // Lattice operators.
  lattice_streamed_links,
  lattice_amortising_extent,
  lattice_cached,
  lattice_cached_slices,
  lattice_cores_a_cache,
  // Halo exchange.
  halo_streaming,
  halo_claimed,
  halo_kernel,
  halo_kernel_small_pages,
  halo_kernel_run,
  halo_worker,
  // Messages between two ranks of one node.
  channel_slot,
  channel_private_slot,
  channel_kernel,
  channel_both,
  channel_threaded,
  channel_piece,
  channel_pipeline_piece,
  channel_device_piece,
  // Messages to other nodes.
  transport_lanes,
  transport_split,
  // Messages of unchanged programs.
  messages_envelope,
  messages_slots,
  messages_patience,
  messages_kept
};
inline constexpr std::size_t rows = static_cast<std::size_t>(Id::messages_kept) + 1;

enum class Unit : std::uint8_t { bytes, count };

// What a default may follow from.
struct Facts {
  int ranks = 1;                  // on this node
  bool crowded = false;           // the node has more ranks than cores
  std::size_t cache_bytes = 0;    // of the last-level cache, as far as it is believed
  bool openmpi = false;           // the MPI is Open MPI
  bool openmpi_eager = false;     // Open MPI sends below 64 KiB at once (btl_tcp_eager_limit)
  bool one_second_cache = false;  // all CPUs of the machine share it
};

using Rule = std::size_t (*)(const Facts&);

struct Row {
  Id id;
  std::string_view name;
  Unit unit;
  std::size_t constant;   // the default; not looked at where there is a rule
  Rule rule;              // computes the default from facts; null: it is constant
  std::string_view text;  // the default as the docs show it
  std::size_t least;      // what a profile may set: beyond these bounds an algorithm breaks
  std::size_t most;
  std::string_view serves;   // the calls that ask it
  std::string_view meaning;  // what is done up to it, or from it on
  std::string_view origin;   // how the default was found
  std::string_view machine;  // where it was measured; empty: nowhere, it is an estimate or follows
};

std::span<const Row> table() noexcept;
const Row& row(Id) noexcept;
const Row* find(std::string_view name) noexcept;  // null: no row has that name

const char* name(Unit) noexcept;

// Returns the default under these facts.
std::size_t default_value(const Row&, const Facts&) noexcept;

}  // namespace ropewalk::tuning
