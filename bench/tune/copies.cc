#include "tune/copies.hpp"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "common/pages.hpp"
#include "common/statistics.hpp"
#include "common/timed_threads.hpp"
#include "kernels/kernels.hpp"
#include "p2p/limit.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t least_copy = 4 * KiB;
constexpr std::size_t largest_cached = 4096 * KiB;

std::vector<std::size_t> copy_sizes(std::size_t largest) {
  std::vector<std::size_t> all;
  for (std::size_t bytes = least_copy; bytes <= std::min(largest / 2, largest_cached); bytes *= 4) {
    all.push_back(bytes);
  }
  return all;
}

// Place says where the next copy begins: at the same place, or behind the copy before.
class Place {
 public:
  Place(std::size_t bytes, std::size_t room, bool moves) : bytes_(bytes), room_(room) {
    if (!moves) room_ = bytes_;
  }
  std::size_t next() {
    const std::size_t at = at_;
    at_ = at_ + 2 * bytes_ > room_ ? 0 : at_ + bytes_;
    return at;
  }

 private:
  std::size_t bytes_;
  std::size_t room_;
  std::size_t at_ = 0;
};

// Pattern says who reads from whom.
enum class Pattern { alone, one_to_all, all_to_all };
constexpr std::string_view pattern_names[] = {"alone", "one_to_all", "all_to_all"};

struct RemoteBlock {
  pid_t process = 0;
  std::byte* data = nullptr;
};

// Returns the block of every rank. Doubles carry process numbers and addresses between the ranks,
// and hold them exactly.
std::vector<RemoteBlock> remotes(const Ranks& ranks, const PageBlock& block) {
  const auto address = reinterpret_cast<std::uintptr_t>(block.data());
  std::vector<RemoteBlock> all;
  const std::vector<double> own = {static_cast<double>(getpid()), static_cast<double>(address)};
  for (const std::vector<double>& told : ranks.gather(own)) {
    all.push_back({static_cast<pid_t>(told[0]),
                   reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(told[1]))});
  }
  return all;
}

bool read_from(const RemoteBlock& from, std::byte* to, std::size_t bytes) {
  const iovec local = {to, bytes};
  const iovec remote = {from.data, bytes};
  return process_vm_readv(from.process, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

// Returns the rank that `rank` reads from; `rank` itself means that it does not read.
int source(Pattern pattern, int rank, int ranks) {
  if (pattern == Pattern::all_to_all) return (rank + 1) % ranks;
  if (pattern == Pattern::one_to_all || rank == 1) return 0;
  return rank;
}

double time_reads(const RemoteBlock& from, const PageBlock& to, std::size_t bytes, int calls) {
  const double begin = now_us();
  for (int i = 0; i < calls; ++i) read_from(from, to.data(), bytes);
  return now_us() - begin;
}

// Readers are fewer ranks than all: so many of them read from rank 0, or each from the next.
struct Readers {
  Pattern pattern;
  int count;

  // Returns the rank that `rank` reads from, and -1 where it does not read.
  int source(int rank) const {
    if (pattern == Pattern::one_to_all) return rank > 0 && rank <= count ? 0 : -1;
    return rank < count ? (rank + 1) % count : -1;
  }
  std::string name() const {
    return fmt::format("{}_{}", pattern_names[static_cast<std::size_t>(pattern)], count);
  }
};

// Returns both patterns for 2, 4, 8, ... readers, without those in which all ranks take part.
std::vector<Readers> some_readers(int ranks) {
  std::vector<Readers> all;
  for (int count = 2; count < ranks; count *= 2) {
    if (count < ranks - 1) all.push_back({Pattern::one_to_all, count});
    all.push_back({Pattern::all_to_all, count});
  }
  return all;
}

}  // namespace

std::vector<TuneCost> flag_costs(const Ranks& ranks, const Effort& effort) {
  if (ranks.size() % 2 != 0) return {};
  P2pLimit limit(ranks, least_copy);
  if (!ranks.all(limit.is_there())) return {};
  P2pRun run;
  run.rank = ranks.rank();
  const Sample there_and_back = [&](int calls) {
    run.iterations = calls;
    return limit.time_flags(run).us;
  };
  return {{"flag", "arena", "flag", 0, median(in_turns(ranks, {there_and_back}, effort)[0]) / 2}};
}

std::vector<TuneCost> copy_costs(const Ranks& ranks, std::size_t largest, const Effort& effort) {
  const PageBlock from = page_block("memalign", largest);
  const PageBlock to = page_block("memalign", largest);
  std::vector<TuneCost> all;
  for (const bool moves : {false, true}) {
    for (const std::size_t bytes : copy_sizes(largest)) {
      std::vector<Sample> ways;
      std::vector<Place> places(2, Place(bytes, largest, moves));
      for (const auto stores : {kernels::Stores::temporal, kernels::Stores::streaming}) {
        ways.emplace_back([&, bytes, stores](int calls) {
          Place& place = places[stores == kernels::Stores::streaming ? 1 : 0];
          const double begin = now_us();
          for (int i = 0; i < calls; ++i) {
            const std::size_t at = place.next();
            kernels::copy(to.data() + at, from.data() + at, bytes, stores);
          }
          return now_us() - begin;
        });
      }
      const Times times = in_turns(ranks, ways, effort);
      const std::string memory = moves ? "memory" : "cached";
      all.push_back({"copy", memory, "plain", bytes, median(times[0])});
      all.push_back({"copy", memory, "streaming", bytes, median(times[1])});
    }
  }
  return all;
}

std::vector<TuneCost> reader_costs(const Ranks& ranks, std::size_t largest, const Effort& effort) {
  const PageBlock from = page_block("memalign", largest);
  const PageBlock to = page_block("memalign", largest);
  const std::vector<RemoteBlock> others = remotes(ranks, from);
  const auto next = static_cast<std::size_t>((ranks.rank() + 1) % ranks.size());
  if (!ranks.all(read_from(others[next], to.data(), least_copy))) return {};
  const std::vector<Readers> patterns = some_readers(ranks.size());
  std::vector<TuneCost> all;
  for (const std::size_t bytes : copy_sizes(largest)) {
    if (patterns.empty()) break;
    std::vector<Sample> ways;
    ways.reserve(patterns.size());
    for (const Readers& one : patterns) {
      ways.emplace_back([&, bytes, of = one.source(ranks.rank())](int calls) {
        return of < 0 ? 0.0 : time_reads(others[static_cast<std::size_t>(of)], to, bytes, calls);
      });
    }
    const Times times = in_turns(ranks, ways, effort);
    for (std::size_t way = 0; way < ways.size(); ++way) {
      all.push_back({"kernel", "private", patterns[way].name(), bytes, median(times[way])});
    }
  }
  ranks.barrier();  // no rank still reads the memory that is freed now
  return all;
}

std::vector<TuneCost> kernel_costs(const Ranks& ranks, std::size_t largest, const Effort& effort) {
  const PageBlock from = page_block("memalign", largest);
  const PageBlock to = page_block("memalign", largest);
  const std::vector<RemoteBlock> others = remotes(ranks, from);
  const auto next = static_cast<std::size_t>((ranks.rank() + 1) % ranks.size());
  if (!ranks.all(read_from(others[next], to.data(), least_copy))) return {};
  std::vector<TuneCost> all;
  for (const std::size_t bytes : copy_sizes(largest)) {
    std::vector<Sample> ways;
    for (const Pattern pattern : {Pattern::alone, Pattern::one_to_all, Pattern::all_to_all}) {
      const int of = source(pattern, ranks.rank(), ranks.size());
      ways.emplace_back([&, bytes, of](int calls) {
        if (of == ranks.rank()) return 0.0;
        return time_reads(others[static_cast<std::size_t>(of)], to, bytes, calls);
      });
    }
    const Times times = in_turns(ranks, ways, effort);
    for (std::size_t way = 0; way < ways.size(); ++way) {
      all.push_back(
          {"kernel", "private", std::string(pattern_names[way]), bytes, median(times[way])});
    }
  }
  ranks.barrier();  // no rank still reads the memory that is freed now
  return all;
}

int samples_of_copies(std::size_t largest, int ranks) {
  const auto sizes = static_cast<int>(copy_sizes(largest).size());
  constexpr int ways_of_copies = 4;
  constexpr int ways_of_kernel = 3;
  const auto ways_of_readers = static_cast<int>(some_readers(ranks).size());
  constexpr int flags = 3;
  return flags + sizes * (ways_of_copies + ways_of_kernel + ways_of_readers);
}

}  // namespace ropewalk::bench
