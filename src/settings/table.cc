#include "settings/table.hpp"

#include <array>

namespace ropewalk::settings {
namespace {

constexpr Option rows[] = {
    // ---- read by the library
    {Id::lanes, "ROPEWALK_LANES", Kind::count, "auto", "", "auto", "from the cores left free",
     Scope::all_ranks, Reader::library, "explanation/line-rate.md",
     "lanes of an `EndpointSet` that was not told how many. Set, it is also the number of "
     "[threads that send and receive](../explanation/nodes.md#threads) in large reductions over "
     "nodes",
     1, 64},
    {Id::pages, "ROPEWALK_PAGES", Kind::choice, "require,prefer,never", "", "prefer", "",
     Scope::rank, Reader::library, "explanation/memory.md",
     "huge pages for the arena of this process ([memory](../explanation/memory.md))"},
    {Id::memory, "ROPEWALK_MEMORY", Kind::count, "auto,ddr,hbm,cxl", "NUMA node", "auto",
     "near the thread that touches it first", Scope::rank, Reader::library,
     "explanation/memory.md#kinds-of-memory",
     "where the memory of the arena of this process lies: the number of a NUMA node, or the "
     "[kind](../explanation/memory.md#kinds-of-memory) of its memory",
     0, 1023},
    {Id::arena_bytes, "ROPEWALK_ARENA_BYTES", Kind::bytes, "auto", "", "auto",
     "half of the memory; less [under a limit]"
     "(../explanation/memory.md#limits-of-the-address-space)",
     Scope::rank, Reader::library, "explanation/memory.md",
     "addresses reserved for an arena, the most it can grow to", 1},
    {Id::fork, "ROPEWALK_FORK", Kind::choice, "copy,refuse", "", "copy", "", Scope::rank,
     Reader::library, "explanation/memory.md",
     "what a forked child finds where live allocations were: a private copy, or nothing"},
    {Id::malloc_threshold, "ROPEWALK_MALLOC_THRESHOLD", Kind::bytes, "off", "", "128K", "",
     Scope::rank, Reader::malloc, "explanation/memory.md#malloc",
     "from this size on the [malloc library](../explanation/memory.md#malloc) takes memory from "
     "the arena; less than 4096 is 4096. It cannot report an error: malformed, it stays at the "
     "default, and `ropewalk_malloc_state()` says so"},
    {Id::malloc_learn, "ROPEWALK_MALLOC_LEARN", Kind::choice, "off,on", "", "on", "", Scope::rank,
     Reader::malloc, "explanation/memory.md#learned-placement",
     "whether the malloc library [learns](../explanation/memory.md#learned-placement) which places "
     "in the program communicate what they allocate, and leaves the others to libc. `off`: all "
     "from the threshold on comes from the arena, `calloc` too. Malformed, it learns, and "
     "`ropewalk_malloc_state()` says so"},
    {Id::isa, "ROPEWALK_ISA", Kind::choice, "auto,baseline,avx2,avx512", "", "auto",
     "the best the processor has", Scope::rank, Reader::library,
     "decisions/0001-kernels-per-instruction-set.md",
     "instruction set of the copy and reduce kernels"},
    {Id::xpmem, "ROPEWALK_XPMEM", Kind::choice, "auto,off", "", "auto", "", Scope::rank,
     Reader::library, "explanation/collectives.md#private-buffers-and-xpmem",
     "whether [private buffers are attached]"
     "(../explanation/collectives.md#private-buffers-and-xpmem) where every rank has the kernel "
     "module XPMEM"},
    {Id::registrations, "ROPEWALK_REGISTRATIONS", Kind::count, "", "", "4096", "", Scope::rank,
     Reader::library, "explanation/collectives.md#private-buffers-and-xpmem",
     "buffers of other ranks that a process keeps attached, over all communicators", 1,
     32768},  // one mapping each, of the 65530 that a process may have
    {Id::registration_trace, "ROPEWALK_REGISTRATION_TRACE", Kind::path, "",
     "beginning of the path of a file", "", "", Scope::rank, Reader::library,
     "explanation/collectives.md#private-buffers-and-xpmem",
     "each process writes into the file of that name, with a dot and its process number behind it, "
     "what it asks of the private memory of other ranks; `ropewalk bench attach --traces` "
     "[replays](../how-to/benchmarks.md#attach-memory-of-other-ranks) such files"},
    {Id::domains, "ROPEWALK_DOMAINS", Kind::count, "auto,off", "ranks", "auto", "",
     Scope::all_ranks, Reader::library, "explanation/collectives.md#two-levels",
     "which ranks share a cache, for [reductions in two levels]"
     "(../explanation/collectives.md#two-levels) and for the order of ranks on a grid: those bound "
     "to CPUs of one outermost cache; none; or so many consecutive ranks",
     1},
    {Id::nodes, "ROPEWALK_NODES", Kind::nodes, "auto", "", "auto", "", Scope::all_ranks,
     Reader::library, "explanation/nodes.md",
     "a tool for tests: which ranks of `MPI_COMM_WORLD` are taken to share a node, on one machine. "
     "A list is repeated as needed; `round:3` puts rank r on node r mod 3. Ranks of different "
     "pretended nodes never share memory"},
    {Id::interface, "ROPEWALK_INTERFACE", Kind::text, "", "names, as in `ib0,eth1`", "",
     "all but loopback, the fastest first", Scope::rank, Reader::library,
     "how-to/pytorch.md#several-nodes",
     "the network interfaces at which ranks of other nodes reach a process group that has no MPI "
     "([several nodes](../how-to/pytorch.md#several-nodes)); the first that answers is taken"},
    {Id::timeout, "ROPEWALK_TIMEOUT", Kind::count, "off", "seconds",
     // The default is longer than a switch takes to reboot or a machine to be moved, and short
     // beside an allocation of hours.
     "60", "", Scope::all_ranks, Reader::library, "explanation/dead-ranks.md",
     "how long a node may answer nothing, while a rank waits, before [its ranks are an error]"
     "(../explanation/dead-ranks.md); `off`: ranks of other nodes are not watched",
     1, 86400},
    {Id::allreduce, "ROPEWALK_ALLREDUCE", Kind::choice, "auto,whole,flat,doubling,halving,ring,mpi",
     "", "auto", "", Scope::all_ranks, Reader::library, "explanation/nodes.md#reductions",
     "how an allreduce over [several nodes](../explanation/nodes.md#reductions) goes; for tests "
     "and benches"},
    {Id::reduction_threads, "ROPEWALK_REDUCTION_THREADS", Kind::count, "auto", "", "auto",
     "the cores that the rank has for itself, up to 8", Scope::rank, Reader::library,
     "explanation/nodes.md#threads",
     "threads of a rank that share the arithmetic of [large reductions over nodes]"
     "(../explanation/nodes.md#threads), the caller's included",
     1, 64},
    {Id::piece_bytes, "ROPEWALK_PIECE_BYTES", Kind::bytes, "off", "", "off", "", Scope::rank,
     Reader::library, "explanation/line-rate.md",
     "parts of a plan of messages above it are sent in pieces of that size "
     "([why](../explanation/line-rate.md)); the least of all ranks holds, and `off` is the least. "
     "`ropewalk run` sets it for TCP",
     4096},  // smaller pieces cost more in calls than any network gives back
    {Id::movements, "ROPEWALK_MOVEMENTS", Kind::choice, "auto,nodes", "", "auto", "",
     Scope::all_ranks, Reader::library, "explanation/nodes.md",
     "`nodes`: barriers, movements and reduce_scatter over [several nodes]"
     "(../explanation/nodes.md) never go to MPI for their size; for tests and benches"},
    {Id::profile, "ROPEWALK_PROFILE", Kind::file, "", "path of a profile", "",
     "the sizes that ropewalk was measured with", Scope::all_ranks, Reader::library,
     "reference/thresholds.md#a-profile",
     "a [profile](thresholds.md#a-profile): sizes at which ropewalk goes another way, in place of "
     "its own. Ranks must have the same contents, whatever their paths; each process reads the "
     "file once"},
    {Id::profile_machine, "ROPEWALK_PROFILE_MACHINE", Kind::choice, "same,any", "", "same", "",
     Scope::all_ranks, Reader::library, "how-to/tune.md#another-machine",
     "`any`: a profile counts on every machine. Otherwise one that was measured on another machine "
     "is not used"},
    {Id::disable, "ROPEWALK_DISABLE", Kind::choice, "off,on", "", "off", "", Scope::all_ranks,
     Reader::drop_in, "explanation/drop-in.md",
     "`on`: the [drop-in](../explanation/drop-in.md) stands aside: every call and every allocation "
     "goes where it would go without. So does anything that cannot be understood"},
    {Id::stats, "ROPEWALK_STATS", Kind::choice, "off,on,compare", "", "off", "", Scope::all_ranks,
     Reader::drop_in, "explanation/drop-in.md",
     "the drop-in counts what becomes of each collective and prints it at `MPI_Finalize`, once for "
     "the job; `compare` has every 16th call made by MPI as well, but for those in which one rank "
     "may reduce in place alone (`MPI_Reduce` and scans). Malformed, it is `on`, and the "
     "print says so"},
    {Id::nonblocking, "ROPEWALK_NONBLOCKING", Kind::choice, "auto,off,on", "", "auto",
     "where there are two cores a rank", Scope::rank, Reader::drop_in, "explanation/drop-in.md",
     "whether the [drop-in](../explanation/drop-in.md) serves nonblocking collectives: large ones "
     "by a thread, under `MPI_THREAD_MULTIPLE`, and reductions without one below that; on one rank "
     "`off`, it is so on all"},
    {Id::device_buffers, "ROPEWALK_DEVICE_BUFFERS", Kind::choice, "auto,off", "", "auto", "",
     Scope::rank, Reader::library, "reference/types.md#memory",
     "`off`: the program passes no memory of a device (GPU) to MPI: the drop-in serves it also "
     "[where an MPI would take such memory](types.md#memory). Nor to a `Channel`, which then asks "
     "the driver [of no buffer](../explanation/channel.md#memory-of-a-device)"},
    {Id::messages, "ROPEWALK_MESSAGES", Kind::choice, "on,off", "", "on", "", Scope::all_ranks,
     Reader::drop_in, "explanation/drop-in-messages.md",
     "`off`: large messages between ranks of a node are MPI's. Otherwise they go [through shared "
     "memory](../explanation/drop-in-messages.md), and only their envelopes through MPI"},
    {Id::onesided, "ROPEWALK_ONESIDED", Kind::choice, "on,off", "", "on", "", Scope::rank,
     Reader::drop_in, "explanation/drop-in-windows.md",
     "`off`: all windows are MPI's. Otherwise those whose ranks share a node are served [by loads "
     "and stores](../explanation/drop-in-windows.md). On one rank `off`, a window is MPI's on all"},
    {Id::mpi_library, "ROPEWALK_MPI_LIBRARY", Kind::path, "", "path of a `libmpi.so`", "",
     "the one the process has loaded", Scope::rank, Reader::library, "reference/command.md",
     "the MPI that ropewalk calls, for programs that link none"},
    // ---- read by the command
    {Id::mpi, "ROPEWALK_MPI", Kind::path, "mpich,openmpi,intel,system", "prefix of an MPI", "",
     "the first found", Scope::command, Reader::command, "reference/command.md#ropewalk-run",
     "as `--mpi`"},
    {Id::preload, "ROPEWALK_PRELOAD", Kind::path, "", "a folder", "", "beside the package",
     Scope::command, Reader::command, "reference/command.md#ropewalk-run",
     "the one folder in which `ropewalk run` looks for `libropewalk-malloc.so` and "
     "`libropewalk-mpi.so`, or for `malloc/` and `mpi/` with them"},
    {Id::line_rate, "ROPEWALK_LINE_RATE", Kind::real, "", "MB/s", "", "", Scope::command,
     Reader::command, "how-to/cluster-in-a-box.md",
     "what `ropewalk bench comms` takes for 100 %, one way; `ropewalk cluster` sets it, and the "
     "[other variables of a box](../how-to/cluster-in-a-box.md)"},
    {Id::libexec, "ROPEWALK_LIBEXEC", Kind::path, "", "a folder", "", "beside the package",
     Scope::command, Reader::command, "reference/command.md",
     "the one folder in which `ropewalk bench` looks for the benchmark programs"},
    // ---- set by the command
    {Id::set, "ROPEWALK_SET", Kind::text, "", "", "", "", Scope::command, Reader::set_by_command,
     "reference/command.md#ropewalk-run",
     "what `ropewalk run` has set, and what was there before, for [a run inside a run]"
     "(command.md#ropewalk-run)"},
    {Id::bench_settings, "ROPEWALK_BENCH_SETTINGS", Kind::text, "", "", "", "", Scope::command,
     Reader::set_by_command, "reference/command.md",
     "the variables of the MPI that `ropewalk bench` has set, for the heading of a benchmark"},
    {Id::box, "ROPEWALK_BOX", Kind::count, "", "", "", "", Scope::command, Reader::set_by_command,
     "how-to/cluster-in-a-box.md",
     "the process that keeps the box of `ropewalk cluster` which this command runs in"},
    {Id::box_nodes, "ROPEWALK_BOX_NODES", Kind::text, "", "", "", "", Scope::command,
     Reader::set_by_command, "how-to/cluster-in-a-box.md",
     "the nodes of the box, and how many ranks each takes"},
    {Id::box_cores, "ROPEWALK_BOX_CORES", Kind::choice, "own,shared", "", "", "", Scope::command,
     Reader::set_by_command, "how-to/cluster-in-a-box.md",
     "whether each node of the box has cores of its own"},
    {Id::box_rails, "ROPEWALK_BOX_RAILS", Kind::text, "", "", "", "", Scope::command,
     Reader::set_by_command, "how-to/cluster-in-a-box.md",
     "the network interfaces of a node of the box"},
    // ---- read by the scripts of the tree
    {Id::jobs, "ROPEWALK_JOBS", Kind::count, "", "", "", "the number of cores", Scope::command,
     Reader::scripts, "reference/environment.md", "compilers and tests at a time", 1},
    {Id::command, "ROPEWALK_COMMAND", Kind::path, "", "a file", "", "the one of `.venv`",
     Scope::command, Reader::scripts, "reference/environment.md",
     "the command `ropewalk` that `bench/dropin/compare.py` starts programs with"},
};

constexpr bool in_order() {
  for (std::size_t row = 0; row < std::size(rows); ++row) {
    if (static_cast<std::size_t>(rows[row].id) != row) return false;
  }
  return std::size(rows) == options;
}
static_assert(in_order(), "the rows come in the order of Id");

}  // namespace

std::span<const Option> table() noexcept { return rows; }

const Option& option(Id id) noexcept { return rows[static_cast<std::size_t>(id)]; }

const char* name(Kind kind) noexcept {
  constexpr const char* names[] = {"choice", "count", "bytes", "real",
                                   "path",   "file",  "nodes", "text"};
  return names[static_cast<std::size_t>(kind)];
}

const char* name(Scope scope) noexcept {
  constexpr const char* names[] = {"rank", "all ranks", "command"};
  return names[static_cast<std::size_t>(scope)];
}

const char* name(Reader reader) noexcept {
  constexpr const char* names[] = {"library", "malloc library",     "drop-in",
                                   "command", "set by the command", "scripts"};
  return names[static_cast<std::size_t>(reader)];
}

}  // namespace ropewalk::settings
