#include "tuning/table.hpp"

#include <algorithm>
#include <iterator>

#include "node/control.hpp"

namespace ropewalk::tuning {
namespace {

constexpr std::size_t KiB = std::size_t{1} << 10;
constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t unbounded = std::size_t{1} << 40;  // "never", for a size that none reaches

// A payload that is inlined must fit the slot.
constexpr std::size_t slot = node::Slot::payload_bytes;

// A copy has fewer pieces than 2^16 (Rooms::piece_bits): 64 MiB in pieces of 4 KiB has a quarter.
constexpr std::size_t most_copied = 64 * MiB;
constexpr std::size_t most_slot = 64 * KiB;  // two of them fit the slot memory of a pair
constexpr std::size_t least_piece = 4 * KiB;

constexpr std::string_view box = "4 nodes of 2 ranks on TCP, in a box of 2 cores";
constexpr std::string_view xeon = "Xeon virtual machine, 2 ranks on 2 cores";
constexpr std::string_view zen4 = "2 cores of Zen 4";
constexpr std::string_view epyc = "EPYC virtual machine, 2 ranks on 2 cores, 1 MiB second cache";
constexpr std::string_view epyc_and_xeon = "EPYC and Xeon virtual machines, 2 ranks on 2 cores";

// Where ranks share cores, an exchange of flags costs time slices, and a slot saves one of two.
constexpr std::size_t inlined(const Facts& facts) {
  const std::size_t shared = 8 * KiB / static_cast<std::size_t>(facts.ranks);
  return facts.crowded ? std::clamp<std::size_t>(shared, 512, slot) : 512;
}

constexpr std::size_t inlined_rooted(const Facts& facts) { return facts.crowded ? slot : 4 * KiB; }

constexpr std::size_t inlined_allgather(const Facts& facts) {
  const std::size_t each = 4 * KiB / static_cast<std::size_t>(facts.ranks);
  return std::clamp(each, inlined(facts), inlined_rooted(facts));
}

// Where ranks share cores, an owner that waits for readers loses time slices.
constexpr std::size_t pushed(const Facts& facts) { return facts.crowded ? unbounded : 16 * KiB; }

// A copy through the arena moves every line from one core's second cache to the other's and back; a
// line that the other core has read costs up to 30 ns to write. Was measured for two ranks with a
// core each: more of them may wait for each other in the kernel.
constexpr bool kernel_is_faster(const Facts& facts) {
  return !facts.one_second_cache && facts.ranks == 2 && !facts.crowded;
}

constexpr std::size_t piecewise(const Facts& facts) {
  return kernel_is_faster(facts) ? 8 * KiB : 256 * KiB;
}

constexpr std::size_t private_slot(const Facts& facts) {
  return kernel_is_faster(facts) ? 8 * KiB : 32 * KiB;
}
constexpr std::size_t kernel(const Facts& facts) {
  return kernel_is_faster(facts) ? 8 * KiB : unbounded;
}

constexpr std::size_t halo_kernel(const Facts& facts) {
  return kernel_is_faster(facts) ? 4 * KiB : 128 * KiB;
}
constexpr std::size_t halo_kernel_small_pages(const Facts& facts) {
  return kernel_is_faster(facts) ? 4 * KiB : 64 * MiB;
}
constexpr std::size_t halo_kernel_run(const Facts& facts) {
  return kernel_is_faster(facts) ? 2 * KiB : 16 * KiB;
}

// One rank reads the copies of all others, which share its second cache.
constexpr std::size_t piecewise_alone(const Facts& facts) {
  if (kernel_is_faster(facts)) return 16 * KiB;
  const auto others = static_cast<std::size_t>(std::max(1, facts.ranks - 1));
  return std::max(16 * KiB, 256 * KiB / others);
}

// Send and receive buffers of all ranks together leave the last-level cache.
constexpr std::size_t streaming(const Facts& facts) {
  return facts.cache_bytes / (2 * static_cast<std::size_t>(facts.ranks));
}

// What Open MPI sends at once, with its header, lies below 64 KiB. Above, it asks first, and the
// answer waits behind the data of the other direction.
constexpr std::size_t most_message(const Facts& facts) {
  return facts.openmpi_eager ? 60 * KiB : 256 * KiB;
}

// A thread that has copies in hand and no core makes all others wait for a time slice.
constexpr std::size_t bytes_a_worker(const Facts& facts) {
  return facts.crowded ? unbounded : 256 * KiB;
}

constexpr std::size_t flat_rooted(const Facts& facts) { return facts.openmpi ? 8 * KiB : 0; }

constexpr Row all[] = {
    // ---- one node
    {Id::node_inlined, "node.inlined_bytes", Unit::bytes, 0, &inlined,
     "512; where ranks share cores 8K / ranks, between 512 and a slot (5184)", 0, slot,
     "allreduce, scan, exscan, reduce_scatter, alltoall",
     "up to here the data travels in the slots, beside the flags",
     "a slot moves each byte twice as often between caches, for one exchange of flags instead of "
     "two",
     epyc},
    {Id::node_inlined_allgather, "node.inlined_allgather_bytes", Unit::bytes, 0, &inlined_allgather,
     "4K / ranks, between node.inlined_bytes and node.inlined_rooted_bytes", 0, slot, "allgather",
     "blocks up to here travel in the slots", "as node.inlined_bytes, for the bytes of all ranks",
     epyc},
    {Id::node_inlined_rooted, "node.inlined_rooted_bytes", Unit::bytes, 0, &inlined_rooted,
     "4K; where ranks share cores a slot (5184)", 0, slot,
     "broadcast, reduce, gather, scatter, neighbours",
     "up to here the data travels in the slots, and senders do not wait for their root",
     "senders are twice as fast, until so many lines a call take longer from cache to cache than "
     "two exchanges of flags",
     epyc},
    {Id::node_copied, "node.copied_bytes", Unit::bytes, 16 * KiB, nullptr, "16K", 0, most_copied,
     "collectives over nodes, inside a node",
     "private buffers up to here are copied into the arena before others read them",
     "below, the copy takes less than the kernel's system call", epyc},
    {Id::node_piecewise, "node.piecewise_bytes", Unit::bytes, 0, &piecewise,
     "256K; 8K for two ranks with second caches of their own", 0, most_copied,
     "broadcast, allgather, scatter, alltoall, neighbours",
     "private buffers up to here are copied piece by piece, while others read",
     "copies and buffer fit the second cache: EPYC, 1.8 to 6 times as fast as the kernel's copy "
     "from 32K to here; Xeon, that takes 0.3 to 0.9 of their time in hot buffers",
     epyc_and_xeon},
    {Id::node_piecewise_alone, "node.piecewise_alone_bytes", Unit::bytes, 0, &piecewise_alone,
     "256K / (ranks - 1), at least 16K; 16K for two ranks with second caches of their own", 0,
     most_copied, "allreduce, reduce, scan, exscan, reduce_scatter, gather",
     "as node.piecewise_bytes, where one rank reads the copies of all others",
     "all copies together fit the reader's second cache; Xeon, as above", epyc_and_xeon},
    {Id::node_piece, "node.piece_bytes", Unit::bytes, 8 * KiB, nullptr, "8K", least_piece,
     most_copied, "all that copy piece by piece", "length of a piece; readers begin with the first",
     "each piece costs a flag: 4K takes 1.6 times as long at 64K and more, 16K no less (broadcast)",
     epyc},
    {Id::node_pushed, "node.pushed_bytes", Unit::bytes, 0, &pushed,
     "16K; where ranks share cores never", 1, unbounded,
     "allgather, alltoall, gather, scatter, broadcast between two",
     "private blocks from here on (rooted: from twice as much) are written into receive buffers "
     "that are mapped, instead of being copied for their readers",
     "one copy instead of two, for an exchange of flags", xeon},
    {Id::node_streaming, "node.streaming_bytes", Unit::bytes, 0, &streaming,
     "last-level cache (16M to 64M are believed) / (2 x ranks)", 1, unbounded,
     "all whose results are stored from registers",
     "from here on results are stored past the "
     "caches",
     "send and receive buffers of all ranks exceed the cache", ""},
    {Id::node_two_level, "node.two_level_bytes", Unit::bytes, 16 * KiB, nullptr, "16K", 0,
     unbounded, "allreduce, reduce", "from here on cache domains reduce among themselves first",
     "an estimate: one more exchange of flags a mebibyte against bytes that cross between caches",
     ""},
    {Id::node_staging_chunk, "node.staging_chunk_bytes", Unit::bytes, 64 * KiB, nullptr, "64K",
     4 * KiB, 16 * MiB, "reductions and broadcasts, staged or by CMA",
     "length of a chunk of a staging area, and of what CMA reads at a time",
     "a chunk of every rank stays in the second cache", epyc},
    {Id::node_cma, "node.cma_bytes", Unit::bytes, 16 * KiB, nullptr, "16K", 1, unbounded,
     "all with private buffers",
     "from here on the kernel copies private buffers between processes, where nothing above does",
     "a system call and a look at each page cost 2.5 us for 32K", epyc},
    {Id::node_attach, "node.attach_bytes", Unit::bytes, 16 * KiB, nullptr, "16K", 1, unbounded,
     "all with private buffers",
     "from here on private buffers are attached, where every rank has XPMEM",
     "as node.cma_bytes; XPMEM itself was never measured", ""},
    // ---- several nodes
    {Id::nodes_flat, "nodes.flat_bytes", Unit::bytes, 16 * KiB, nullptr, "16K", 0, unbounded,
     "allreduce", "below, all ranks alike double distances, wherever they are",
     "fastest below; a step inside a node costs as much as a message", box},
    {Id::nodes_ring, "nodes.ring_bytes", Unit::bytes, 256 * KiB, nullptr, "256K", 0, unbounded,
     "allreduce", "from here on the leaders of each slice reduce around a ring; below by MPI",
     "as fast as MPI's own call between leaders from here on; faster with a core for each node",
     box},
    {Id::nodes_chain, "nodes.chain_bytes", Unit::bytes, 64 * KiB, nullptr, "64K", 0, unbounded,
     "reduce",
     "from here on leaders pass partial sums along a chain to the root; below MPI does it",
     "MPI's own call has a message less for small vectors", box},
    {Id::nodes_slice, "nodes.slice_bytes", Unit::bytes, 32 * KiB, nullptr, "32K", 1, unbounded,
     "allreduce, reduce", "a slice of the vector is worth a leader from this size on", "as above",
     box},
    {Id::nodes_slices, "nodes.slices", Unit::count, 16, nullptr, "16", 1, 16, "allreduce, reduce",
     "most leaders a node; the node with the most ranks bounds it too", "tags of 16 slices", ""},
    {Id::nodes_least_message, "nodes.least_message_bytes", Unit::bytes, 32 * KiB, nullptr, "32K",
     4 * KiB, 64 * MiB, "allreduce, reduce", "a message of ring or chain is no shorter",
     "long enough for the line", box},
    {Id::nodes_most_message, "nodes.most_message_bytes", Unit::bytes, 0, &most_message,
     "256K; 60K under Open MPI whose eager limit is not set", 4 * KiB, 64 * MiB,
     "allreduce, reduce", "a message of ring or chain is no longer",
     "short enough that several are under way; under Open MPI what it sends at once: 2 nodes of 2 "
     "ranks reach 99 % of the line so, 83 % with 256K",
     box},
    {Id::nodes_broadcast_flat, "nodes.broadcast_flat_bytes", Unit::bytes, 8 * KiB, nullptr, "8K", 0,
     unbounded, "broadcast", "below, a binomial tree of all ranks; from here on one of nodes",
     "a step inside a node costs as much as a message", box},
    {Id::nodes_broadcast_chain, "nodes.broadcast_chain_bytes", Unit::bytes, 64 * KiB, nullptr,
     "64K", 0, unbounded, "broadcast",
     "from here on slices go along a chain of nodes, where their chunks fill it", "as above", box},
    {Id::nodes_broadcast_least_chunk, "nodes.broadcast_least_chunk_bytes", Unit::bytes, 32 * KiB,
     nullptr, "32K", 4 * KiB, 64 * MiB, "broadcast", "a chunk of a chain is no shorter",
     "long enough for the line", box},
    {Id::nodes_broadcast_most_chunk, "nodes.broadcast_most_chunk_bytes", Unit::bytes, 256 * KiB,
     nullptr, "256K", 4 * KiB, 64 * MiB, "broadcast", "a chunk of a chain is no longer",
     "from here on no MPI transfers the faster", box},
    {Id::nodes_allgather, "nodes.allgather_bytes", Unit::bytes, 128 * KiB, nullptr, "128K", 0,
     unbounded, "allgather", "from here on, all blocks together, ropewalk serves it; below MPI",
     "MPI's own call is faster below", box},
    {Id::nodes_allgather_leaders, "nodes.allgather_leaders_bytes", Unit::bytes, 16 * KiB, nullptr,
     "16K", 0, unbounded, "allgather",
     "up to here, all blocks together, through one leader a node, where ropewalk serves it",
     "few messages count more than copies", box},
    {Id::nodes_reduce_scatter, "nodes.reduce_scatter_bytes", Unit::bytes, 128 * KiB, nullptr,
     "128K", 0, unbounded, "reduce_scatter",
     "from here on, all blocks together, ropewalk serves it; below MPI",
     "MPI's own call is faster below", box},
    {Id::nodes_alltoall, "nodes.alltoall_bytes", Unit::bytes, 8 * KiB, nullptr, "8K", 0, unbounded,
     "alltoall", "blocks up to here ropewalk serves, where no ranks share cores; above MPI",
     "MPI's own call is faster above", box},
    {Id::nodes_gather, "nodes.gather_bytes", Unit::bytes, 4 * KiB, nullptr, "4K", 0, unbounded,
     "gather", "blocks from here on ropewalk serves; below MPI", "MPI's own call is faster below",
     box},
    {Id::nodes_scatter, "nodes.scatter_bytes", Unit::bytes, 64 * KiB, nullptr, "64K", 0, unbounded,
     "scatter", "blocks from here on ropewalk serves; below MPI", "MPI's own call is faster below",
     box},
    {Id::nodes_rooted_flat, "nodes.rooted_flat_bytes", Unit::bytes, 0, &flat_rooted,
     "8K under Open MPI, else 0", 0, unbounded, "reduce, gather, scatter",
     "below, messages go straight between ranks, wherever they are",
     "Open MPI's nonblocking calls, in which a death is noticed, take 1.2 to 6 times as long as "
     "its blocking ones; those of MPICH do not",
     "2 nodes of 2 ranks on TCP, in a box of 2 cores"},
    {Id::nodes_rooted_nodes, "nodes.rooted_nodes", Unit::count, 64, nullptr, "64", 1, 1 << 20,
     "gather, scatter", "over more nodes MPI serves them",
     "an estimate: a root talks to each node itself, MPI's trees are deeper but wider", ""},
    {Id::nodes_rooted_together, "nodes.rooted_together_bytes", Unit::bytes, 64 * KiB, nullptr,
     "64K", 1, 16 * MiB, "gather, scatter and their v-forms",
     "the blocks of a node go in one message where they are no more together",
     "an estimate: above, a message for each block takes less time than the copies", ""},
    {Id::nodes_allgather_chunk, "nodes.allgather_chunk_bytes", Unit::bytes, 256 * KiB, nullptr,
     "256K", 4 * KiB, 64 * MiB, "allgather",
     "length of a message of a slice, and of a copy between two looks at the messages",
     "an estimate: as nodes.broadcast_most_chunk_bytes", ""},
    {Id::nodes_reduce_scatter_chunks, "nodes.reduce_scatter_chunks_bytes", Unit::bytes, 2 * MiB,
     nullptr, "2M", 4 * KiB, 1024 * MiB, "reduce_scatter",
     "bytes of the chunks of one block from all other nodes together; each is an equal part",
     "an estimate: what is received stays in the last-level cache until it is combined", ""},
    {Id::nodes_reduce_scatter_least_chunk, "nodes.reduce_scatter_least_chunk_bytes", Unit::bytes,
     16 * KiB, nullptr, "16K", 4 * KiB, 64 * MiB, "reduce_scatter", "a chunk is no shorter",
     "an estimate: shorter messages do not fill the line", ""},
    {Id::nodes_reduce_scatter_most_chunk, "nodes.reduce_scatter_most_chunk_bytes", Unit::bytes,
     256 * KiB, nullptr, "256K", 4 * KiB, 64 * MiB, "reduce_scatter", "a chunk is no longer",
     "an estimate: as nodes.broadcast_most_chunk_bytes", ""},
    {Id::nodes_alltoall_together_block, "nodes.alltoall_together_block_bytes", Unit::bytes,
     32 * KiB, nullptr, "32K", 0, 64 * MiB, "alltoall, alltoallv",
     "the blocks between two nodes go in one message where their mean length is no more",
     "an estimate: up to here two copies take less time than a message", ""},
    {Id::nodes_alltoall_together, "nodes.alltoall_together_bytes", Unit::bytes, 1 * MiB, nullptr,
     "1M", 0, 64 * MiB, "alltoall, alltoallv",
     "and where they are no more together; otherwise each goes straight from rank to rank",
     "an estimate: it bounds the memory that the copies need", ""},
    {Id::nodes_alltoall_copy, "nodes.alltoall_copy_bytes", Unit::bytes, 256 * KiB, nullptr, "256K",
     4 * KiB, 64 * MiB, "alltoall, alltoallv",
     "bytes that a rank copies inside its node between two looks at its messages",
     "an estimate: some 50 us of copying", ""},
    {Id::nodes_read, "nodes.read_bytes", Unit::bytes, 64 * KiB, nullptr, "64K", 4 * KiB, 16 * MiB,
     "allreduce, reduce", "bytes of an input that a leader reads at a time, where it is not mapped",
     "as node.staging_chunk_bytes: they stay in the second cache", ""},
    {Id::nodes_thread_block, "nodes.thread_block_bytes", Unit::bytes, 64 * KiB, nullptr, "64K",
     4 * KiB, 16 * MiB, "allreduce, reduce by several threads",
     "bytes of the result that a thread combines at a time",
     "inputs and result fit a second cache of 256K; taking a block costs a hundredth of its 5 us",
     zen4},
    {Id::nodes_thread_waking_blocks, "nodes.thread_waking_blocks", Unit::count, 8, nullptr, "8", 1,
     1 << 16, "allreduce, reduce by several threads",
     "blocks that must be left for a sleeping thread to be woken",
     "waking costs 5 us, and 50 us in a virtual machine, as long as 1 to 10 blocks take", zen4},
    {Id::nodes_thread_alone_blocks, "nodes.thread_alone_blocks", Unit::count, 64, nullptr, "64", 0,
     1 << 16, "allreduce, reduce by several threads",
     "blocks of a call before which no thread is woken: 4M",
     "a second thread adds 6 % to the time of 2M and saves a third of that of 8M", zen4},
    // ---- lattice operators (lattice/), by thresholds() of ropewalk/tuning.hpp
    {Id::lattice_streamed_links, "lattice.streamed_links_bytes", Unit::bytes, 10'000'000, nullptr,
     "10000000", 0, unbounded, "Wilson, clover",
     "above, a rank keeps two rows of each link and computes the third",
     "such links come from memory in every hop, and the arithmetic hides behind that", "Zen 4"},
    {Id::lattice_amortising_extent, "lattice.amortising_extent", Unit::count, 4, nullptr, "4", 1,
     1 << 16, "domain wall", "from this extent of the fifth dimension on all three rows are kept",
     "an estimate: a link that is read once is used so many times", ""},
    {Id::lattice_cached, "lattice.cached_bytes", Unit::bytes, 32 * MiB / 3, nullptr,
     "a third of 32M", 0, unbounded, "all operators",
     "where the data of the ranks on one cache are more, they are prefetched from memory",
     "a third of a third-level cache: other data and programs use it, too", "Zen 4"},
    {Id::lattice_cached_slices, "lattice.cached_slices_bytes", Unit::bytes, 24'000'000, nullptr,
     "24000000", 0, unbounded, "domain wall, vectors over the lattice",
     "the same for the spinors of operators with a fifth dimension",
     "slices of a site lie behind each other, and the hardware fetches them from the third level "
     "itself: prefetching loses 5 to 7 % until they come from memory (8^4)",
     "Zen 4"},
    {Id::lattice_cores_a_cache, "lattice.cores_a_cache", Unit::count, 8, nullptr, "8", 1, 1 << 10,
     "all operators", "cores that share a third-level cache", "the processor's", "Zen 4"},
    // ---- halo exchange
    {Id::halo_streaming, "halo.streaming_bytes", Unit::bytes, 4 * KiB, nullptr, "4K", 0, unbounded,
     "direct, put",
     "longer runs are stored past the caches, where the faces of all ranks do not fit them",
     "up to here the store buffer takes them; above, a line that another core has costs 30 ns "
     "stored the plain way, and a tenth of that past the caches",
     "Zen 4"},
    {Id::halo_claimed, "halo.claimed_bytes", Unit::bytes, 64 * KiB, nullptr, "64K", 0, unbounded,
     "direct", "faces up to so many bytes are claimed together; larger ones one by one",
     "1 us of copying: a claim waits for the stores before it, and a neighbour can help", "Zen 4"},
    {Id::halo_kernel, "halo.kernel_bytes", Unit::bytes, 0, &halo_kernel,
     "128K; 4K for two ranks with second caches of their own", 0, unbounded, "direct",
     "faces in private memory on pages of 2 MiB are copied by the kernel from here on; smaller "
     "ones are staged",
     "EPYC: the kernel's copy of 256K and more in one run takes half the time of two plain ones; "
     "with 16K it takes longer. Xeon: as on small pages",
     epyc_and_xeon},
    {Id::halo_kernel_small_pages, "halo.kernel_small_pages_bytes", Unit::bytes, 0,
     &halo_kernel_small_pages, "64M; 4K for two ranks with second caches of their own", 0,
     unbounded, "direct", "the same on pages of 4 KiB",
     "EPYC: the kernel pins page by page: from 16K to 2M two plain copies take a quarter to two "
     "thirds of its time, from 4M to 64M still 0.6 to 1 times; beyond, an estimate: staging takes "
     "twice the face of the arena. Xeon: with one run of 12K to 2.5M the kernel takes 0.34 to 0.58 "
     "of their time",
     epyc_and_xeon},
    {Id::halo_kernel_run, "halo.kernel_run_bytes", Unit::bytes, 0, &halo_kernel_run,
     "16K; 2K for two ranks with second caches of their own", 0, unbounded, "direct",
     "faces whose runs of bytes are shorter on average are staged, of any size; runs with small "
     "gaps between them are read as one",
     "the kernel's copy takes 0.1 us and more for each run: on pages of 2 MiB it is faster with "
     "runs of 16K and more on the EPYC; on the Xeon with runs of 2.9K, not with 1.4K",
     epyc_and_xeon},
    {Id::halo_worker, "halo.worker_bytes", Unit::bytes, 0, &bytes_a_worker,
     "256K; where threads share cores never", 1, unbounded, "all, with several workers",
     "of an exchange for each thread that shares its copies; below twice as many one thread makes "
     "them all",
     "what fits one core's second cache comes slower out of two: with two threads on cores of 2M, "
     "exchanges of up to 384K take up to 3 times as long, of 768K half as long",
     xeon},
    // ---- messages between two ranks of one node
    {Id::channel_slot, "channel.slot_bytes", Unit::bytes, 4 * KiB, nullptr, "4K", 104, most_slot,
     "send, receive", "messages up to here are copied through slots, and their senders do not wait",
     "above, one copy and two flags take less than two copies and one flag", epyc},
    {Id::channel_private_slot, "channel.private_slot_bytes", Unit::bytes, 0, &private_slot,
     "32K; 8K for two ranks with second caches of their own", 104, most_slot, "send, receive",
     "the same for messages in private memory",
     "up to here slots take 0.7 to 0.9 of a pipeline's time on the EPYC, and 0.7 to 1.2 of that of "
     "the kernel's copy on the Xeon",
     epyc_and_xeon},
    {Id::channel_kernel, "channel.kernel_bytes", Unit::bytes, 0, &kernel,
     "1T: never; 8K for two ranks with second caches of their own", 1, unbounded, "send, receive",
     "from here on both ranks have the kernel copy a part of a message from private to private "
     "memory; below, they copy it twice, through a pipeline",
     "the kernel takes 1.7 to 3.4 times as long as a pipeline on the EPYC, 0.25 to 0.7 times on "
     "the Xeon; on a Zen 4 0.4 to 0.7 times, and 0.1 to 0.25 while its two cores share no cache",
     epyc_and_xeon},
    {Id::channel_both, "channel.both_bytes", Unit::bytes, 64 * KiB, nullptr, "64K", 0, unbounded,
     "send, receive", "from here on both ranks copy a part, where each sees the other's buffer",
     "below, the flags between them take longer than what the second one copies", epyc},
    {Id::channel_threaded, "channel.threaded_bytes", Unit::bytes, 256 * KiB, nullptr, "256K", 0,
     unbounded, "send, receive", "from here on all threads of a rank copy, where it has several",
     "an estimate: threads that wait without sleep begin after 1 us, in which one copies 20K", ""},
    {Id::channel_piece, "channel.piece_bytes", Unit::bytes, 8 * KiB, nullptr, "8K", 64, 16 * MiB,
     "send, receive", "least part that one of two ranks copies",
     "a claim takes 50 ns where the other rank has just made one", epyc},
    {Id::channel_pipeline_piece, "channel.pipeline_piece_bytes", Unit::bytes, 16 * KiB, nullptr,
     "16K", 64, 16 * MiB, "send, receive", "length of a piece of a pipeline, which holds four",
     "each piece costs a flag; a longer one makes the first copy out begin later", epyc},
    {Id::channel_device_piece, "channel.device_piece_bytes", Unit::bytes, 512 * KiB, nullptr,
     "512K", 4 * KiB, 16 * MiB, "send, receive",
     "the same for a pipeline from or to memory of a device",
     "an estimate: a copy engine takes some 10 us to begin, in which a bus of 25 GB/s moves 256K",
     ""},
    // ---- messages to other nodes
    {Id::transport_lanes, "transport.lanes", Unit::count, 0, nullptr, "0: from the cores left free",
     0, 64, "endpoints",
     "lanes of an endpoint set that asks for none, where ROPEWALK_LANES is not set",
     "each lane has a thread, which needs a core", ""},
    {Id::transport_split, "transport.split_bytes", Unit::bytes, 1 * MiB, nullptr, "1M", 0,
     unbounded, "endpoints", "longer messages are split over all lanes",
     "an estimate: each part costs a message", ""},
    // ---- messages of unchanged programs
    {Id::messages_envelope, "messages.envelope_bytes", Unit::bytes, 128 * KiB, nullptr, "128K", 64,
     unbounded, "MPI_Send and the like, in the drop-in",
     "from here on a message goes through shared memory, its envelope through MPI",
     "64K takes 0.7 to 1.2 of MPI's time in buffers that are in no cache, 128K half of it",
     "2 cores of Xeon"},
    {Id::messages_slots, "messages.slots", Unit::count, 256, nullptr, "256", 1, 4096,
     "MPI_Send and the like, in the drop-in", "so many such messages of a rank are under way",
     "an estimate: more than any program of the proofs has", ""},
    {Id::messages_patience, "messages.patience_us", Unit::count, 1000, nullptr, "1000", 0,
     unbounded, "MPI_Send and MPI_Wait, in the drop-in",
     "microseconds after which a sender that waits copies its data and goes on",
     "an estimate: longer than a rank that shares its core is away, short beside a hang", ""},
    {Id::messages_kept, "messages.kept_bytes", Unit::bytes, 64 * MiB, nullptr, "64M", 0, unbounded,
     "MPI_Send and MPI_Wait, in the drop-in",
     "so much is copied so; more only after a hundred times that patience", "an estimate", ""},
};

constexpr bool in_order() {
  for (std::size_t at = 0; at < std::size(all); ++at) {
    if (static_cast<std::size_t>(all[at].id) != at) return false;
  }
  return std::size(all) == rows;
}
static_assert(in_order(), "the rows come in the order of Id");

}  // namespace

std::span<const Row> table() noexcept { return all; }

const Row& row(Id id) noexcept { return all[static_cast<std::size_t>(id)]; }

const Row* find(std::string_view name) noexcept {
  const auto found = std::ranges::find(all, name, &Row::name);
  return found == std::end(all) ? nullptr : &*found;
}

const char* name(Unit unit) noexcept { return unit == Unit::bytes ? "bytes" : "count"; }

std::size_t default_value(const Row& row, const Facts& facts) noexcept {
  return row.rule == nullptr ? row.constant : row.rule(facts);
}

}  // namespace ropewalk::tuning
