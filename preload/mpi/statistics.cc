#include "statistics.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "channel/attachments.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/memory.hpp"
#include "settings/names.hpp"
#include "settings/value.hpp"
#include "windows.hpp"

namespace ropewalk::preload {

Statistics statistics = Statistics::off;

namespace {

constexpr int paths = std::max(static_cast<int>(Path::nodes), static_cast<int>(Path::mpi)) + 1;

// Sums over the calls of this rank; of all ranks, once they are added up.
struct Sum {
  std::atomic<std::int64_t> calls{0};
  std::atomic<std::int64_t> bytes{0};
  std::atomic<std::int64_t> ns{0};

  void add(std::size_t more_bytes, std::int64_t more_ns) noexcept {
    calls.fetch_add(1, std::memory_order_relaxed);
    bytes.fetch_add(static_cast<std::int64_t>(more_bytes), std::memory_order_relaxed);
    ns.fetch_add(more_ns, std::memory_order_relaxed);
  }
};

struct Sums {
  std::array<std::array<Sum, paths>, functions> served;
  std::array<std::array<Sum, reasons>, functions> passed;
  std::array<std::array<Sum, paths>, functions> compared;  // served calls that MPI has made, too
  std::array<std::array<Sum, paths>, functions> plain;     // those by MPI
};
Sums sums;

// This is the reason of the first communicator whose ranks are not watched; the thread that makes
// communicators writes it.
char unwatched[256] = "";
char refused[512] = "";
char promise[256] = "";

template <class Each>
void for_each_sum(Each each) {
  const auto all = [&](auto& table) {
    for (auto& row : table) {
      for (Sum& sum : row) each(sum);
    }
  };
  all(sums.served);
  all(sums.passed);
  all(sums.compared);
  all(sums.plain);
}

void add_up_all_ranks() {
  std::vector<std::int64_t> numbers;
  for_each_sum([&](const Sum& sum) {
    for (const auto* number : {&sum.calls, &sum.bytes, &sum.ns}) numbers.push_back(number->load());
  });
  mpi::all_reduce(std::span(numbers), mpi::Combine::sum, mpi::comm_world());
  auto next_number = numbers.begin();
  for_each_sum([&](Sum& sum) {
    for (auto* number : {&sum.calls, &sum.bytes, &sum.ns}) *number = *next_number++;
  });
}

// By Function.
constexpr const char* names[] = {"Barrier",
                                 "Bcast",
                                 "Reduce",
                                 "Allreduce",
                                 "Scan",
                                 "Exscan",
                                 "Reduce_scatter",
                                 "Reduce_scatter_block",
                                 "Allgather",
                                 "Allgatherv",
                                 "Gather",
                                 "Gatherv",
                                 "Scatter",
                                 "Scatterv",
                                 "Alltoall",
                                 "Alltoallv",
                                 "Alltoallw",
                                 "Neighbor_allgather",
                                 "Neighbor_allgatherv",
                                 "Neighbor_alltoall",
                                 "Neighbor_alltoallv",
                                 "Neighbor_alltoallw",
                                 "Ibcast",
                                 "Ireduce",
                                 "Iallreduce",
                                 "Ireduce_scatter_block",
                                 "Iallgather",
                                 "Ialltoall",
                                 "Ialltoallw",
                                 "Ineighbor_allgather",
                                 "Ineighbor_allgatherv",
                                 "Ineighbor_alltoall",
                                 "Ineighbor_alltoallv",
                                 "Ineighbor_alltoallw",
                                 "Barrier_init",
                                 "Bcast_init",
                                 "Reduce_init",
                                 "Allreduce_init",
                                 "Scan_init",
                                 "Exscan_init",
                                 "Reduce_scatter_init",
                                 "Reduce_scatter_block_init",
                                 "Allgather_init",
                                 "Allgatherv_init",
                                 "Gather_init",
                                 "Gatherv_init",
                                 "Scatter_init",
                                 "Scatterv_init",
                                 "Alltoall_init",
                                 "Alltoallv_init",
                                 "Alltoallw_init",
                                 "Neighbor_allgather_init",
                                 "Neighbor_allgatherv_init",
                                 "Neighbor_alltoall_init",
                                 "Neighbor_alltoallv_init",
                                 "Neighbor_alltoallw_init",
                                 "Send",
                                 "Isend",
                                 "Send_init",
                                 "Sendrecv",
                                 "Put",
                                 "Get",
                                 "Accumulate",
                                 "Get_accumulate",
                                 "Fetch_and_op",
                                 "Compare_and_swap",
                                 "Win_fence",
                                 "Win_lock",
                                 "Win_unlock",
                                 "Win_flush",
                                 "Win_post",
                                 "Win_start",
                                 "Win_complete",
                                 "Win_wait"};
static_assert(std::size(names) == functions);
const char* name(Function function) { return names[static_cast<int>(function)]; }

std::string in_bytes(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; bytes >= 9999.5 && unit < 4; ++unit) bytes /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %s", bytes, units[unit]);
  return text;
}

double us_per_call(const Sum& sum) {
  return static_cast<double>(sum.ns) / static_cast<double>(sum.calls) / 1000;
}

void print_row(const char* function, const Sum& sum, int ranks, const char* how) {
  const auto calls = static_cast<double>(sum.calls);
  std::fprintf(stderr, "  %-24s %10.0f %12s %12.3f  %s", function, calls / ranks,
               in_bytes(static_cast<double>(sum.bytes) / calls).c_str(), us_per_call(sum), how);
}

void print_function(int function, int ranks) {
  const char* called = name(static_cast<Function>(function));
  for (int path = 0; path < paths; ++path) {
    if (sums.served[function][path].calls == 0) continue;
    print_row(called, sums.served[function][path], ranks, ropewalk::name(static_cast<Path>(path)));
    const Sum& plain = sums.plain[function][path];
    if (plain.calls > 0) {
      std::fprintf(stderr, "; of %lld calls made twice: %.3f us, plain MPI %.3f us",
                   static_cast<long long>(plain.calls.load()),
                   us_per_call(sums.compared[function][path]), us_per_call(plain));
    }
    std::fputc('\n', stderr);
  }
  for (int reason = 0; reason < reasons; ++reason) {
    if (sums.passed[function][reason].calls == 0) continue;
    print_row(called, sums.passed[function][reason], ranks, "MPI: ");
    std::fprintf(stderr, "%s\n", text(static_cast<Reason>(reason)));
  }
}

void print_tables(int ranks) {
  std::fprintf(stderr, "ropewalk: collectives of %d rank%s\n  %-24s %10s %12s %12s  %s\n", ranks,
               ranks == 1 ? "" : "s", "function", "calls/rank", "bytes/call", "us/call",
               "path, or why the call went to MPI");
  for (int function = 0; function < functions; ++function) print_function(function, ranks);
}

bool anything_served() {
  for (const auto& row : sums.served) {
    for (const Sum& sum : row) {
      if (sum.calls > 0) return true;
    }
  }
  return false;
}

// What the malloc library gave out and learned, where it is there; sums of all ranks.
void print_malloc(const std::vector<std::int64_t>& all, int ranks) {
  const auto bytes = static_cast<double>(all[0]);
  if (all[0] == 0) return;
  std::fprintf(stderr,
               "  large blocks of malloc a rank: %s, %.0f %% communicated; libc was given %.0f, "
               "%s, by what was learned at %.0f places; %.0f were taken back\n",
               in_bytes(bytes / ranks).c_str(), 100 * static_cast<double>(all[1]) / bytes,
               static_cast<double>(all[2]) / ranks,
               in_bytes(static_cast<double>(all[3]) / ranks).c_str(),
               static_cast<double>(all[4]) / ranks, static_cast<double>(all[5]) / ranks);
}

// Every rank has an arena where any call was served.
void print_memory(int ranks, bool prints) {
  if (!anything_served()) return;
  const ArenaStatistics arena = Arena::process().statistics();
  std::vector<std::int64_t> bytes{static_cast<std::int64_t>(arena.live_bytes),
                                  static_cast<std::int64_t>(arena.huge_bytes),
                                  static_cast<std::int64_t>(arena.committed_bytes)};
  std::vector<std::int64_t> blocks;
  for (const std::uint64_t number :
       {arena.malloc_bytes, arena.communicated_bytes, arena.libc_blocks, arena.libc_bytes,
        arena.learned, arena.unlearned}) {
    blocks.push_back(static_cast<std::int64_t>(number));
  }
  mpi::all_reduce(std::span(bytes), mpi::Combine::sum, mpi::comm_world());
  mpi::all_reduce(std::span(blocks), mpi::Combine::sum, mpi::comm_world());
  if (!prints) return;
  std::fprintf(stderr, "  memory a rank: %s in use, %s on 2 MiB pages, in an arena of %s on %s\n",
               in_bytes(static_cast<double>(bytes[0]) / ranks).c_str(),
               in_bytes(static_cast<double>(bytes[1]) / ranks).c_str(),
               in_bytes(static_cast<double>(bytes[2]) / ranks).c_str(),
               ropewalk::name(Arena::process().source()));
  print_malloc(blocks, ranks);
}

// The counts of this rank. No error may keep it from the sums that all ranks make.
channel::CacheCounts registrations() noexcept {
  try {
    if (anything_served()) return channel::process_cache().counts();
  } catch (const std::exception&) {  // ROPEWALK_REGISTRATIONS is malformed: nothing is attached
  }
  return {};
}

// How often the registration caches had what calls needed, inside each node; nothing where no rank
// has attached anything.
void print_registrations(int ranks, bool prints) {
  const channel::CacheCounts own = registrations();
  std::vector<std::int64_t> all;
  for (const std::uint64_t number : {own.hits, own.misses, own.evictions, own.entries}) {
    all.push_back(static_cast<std::int64_t>(number));
  }
  mpi::all_reduce(std::span(all), mpi::Combine::sum, mpi::comm_world());
  if (!prints || all[1] == 0) return;
  const auto each = [&](int which) {
    return static_cast<double>(all[static_cast<std::size_t>(which)]) / ranks;
  };
  std::fprintf(stderr,
               "  private memory of others a rank: found attached %.0f times, attached %.0f, "
               "detached to make room %.0f; %.0f attached now\n",
               each(0), each(1), each(2), each(3));
}

// Prints the note of the first rank that has one.
void print_note(const char* what, std::span<char> note, bool prints) {
  const mpi::Comm world = mpi::comm_world();
  const int none = mpi::size(world);
  std::int64_t first = note.front() == '\0' ? none : mpi::rank(world);
  mpi::all_reduce(std::span(&first, 1), mpi::Combine::min, world);
  if (first == none) return;
  mpi::broadcast(note.data(), note.size(), static_cast<int>(first), world);
  if (prints) std::fprintf(stderr, "  %s: %s\n", what, note.data());
}

// Prints the variables that nobody reads, and those that the drop-in could not read and so left at
// their defaults. It looks at one rank's environment: what is wrong there is mostly wrong
// everywhere.
void print_settings() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name = settings::name_of(*entry);
    if (settings::is_unknown(name)) {
      std::fprintf(stderr, "  settings: %s\n", settings::unknown(name).c_str());
    }
  }
  for (const settings::Option& option : settings::table()) {
    if (option.reader != settings::Reader::drop_in) continue;
    const settings::Value value = settings::read(option);
    if (!value.malformed) continue;
    std::fprintf(stderr, "  settings: %s\n", settings::complaint(value).c_str());
  }
}

void print_windows(int ranks, bool prints) {
  std::int64_t with = windows_made ? 1 : 0;
  mpi::all_reduce(std::span(&with, 1), mpi::Combine::sum, mpi::comm_world());
  if (!prints || with == 0) return;
  std::fprintf(stderr, "  windows made on %d of %d ranks: each call served there looks at MPI\n",
               static_cast<int>(with), ranks);
}

}  // namespace

void note_unwatched(const std::string& reason) noexcept {
  if (*unwatched == '\0') std::snprintf(unwatched, sizeof unwatched, "%s", reason.c_str());
}

void note_promise(const std::string& reason) noexcept {
  if (*promise == '\0') std::snprintf(promise, sizeof promise, "%s", reason.c_str());
}

void tell_untaken(int receiver, std::size_t bytes, std::int64_t seconds) noexcept {
  if (statistics == Statistics::off) return;
  std::fprintf(stderr,
               "ropewalk: rank %d has not taken a message of %zu bytes for %lld s. If it is in a "
               "call of MPI that waits for this rank, set ROPEWALK_MESSAGES=off\n",
               receiver, bytes, static_cast<long long>(seconds));
}

void note_refused(const char* error) noexcept {
  // What some ranks alone want cannot be counted or printed together.
  if (std::string_view(error).starts_with("ROPEWALK_STATS")) statistics = Statistics::off;
  if (*refused == '\0') std::snprintf(refused, sizeof refused, "%s", error);
}

void count_served(Function function, Path path, std::size_t bytes, std::int64_t ns) noexcept {
  sums.served[static_cast<int>(function)][static_cast<int>(path)].add(bytes, ns);
}

void count_passed(Function function, Reason reason, std::size_t bytes, std::int64_t ns) noexcept {
  sums.passed[static_cast<int>(function)][static_cast<int>(reason)].add(bytes, ns);
}

void count_compared(Function function, Path path, std::int64_t served_ns,
                    std::int64_t plain_ns) noexcept {
  sums.compared[static_cast<int>(function)][static_cast<int>(path)].add(0, served_ns);
  sums.plain[static_cast<int>(function)][static_cast<int>(path)].add(0, plain_ns);
}

void read_statistics_setting() {
  const settings::Value value = settings::read(settings::Id::stats);
  if (value.is("off") && !value.malformed) return;
  statistics = value.is("compare") ? Statistics::compare : Statistics::on;
}

void print_statistics() noexcept {
  if (statistics == Statistics::off) return;
  try {
    add_up_all_ranks();
    const int ranks = mpi::size(mpi::comm_world());
    const bool prints = mpi::rank(mpi::comm_world()) == 0;
    if (prints) print_tables(ranks);
    print_memory(ranks, prints);
    print_registrations(ranks, prints);
    print_note("if a rank of another node dies, nobody is told", unwatched, prints);
    print_note("settings", refused, prints);
    print_note("messages go through MPI alone", promise, prints);
    if (prints) print_settings();
    print_windows(ranks, prints);
    if (prints) std::fflush(stderr);
  } catch (...) {  // MPI is failing: no statistics
  }
}

}  // namespace ropewalk::preload
