// ropewalk-bench-memory: the bandwidth of a*x + y by size, on 2 MiB and on 4 KiB pages, against the
// fastest that the same loads and stores go on this machine.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <thread>

#include "common/budget.hpp"
#include "common/machine.hpp"
#include "common/main.hpp"
#include "common/pages.hpp"
#include "common/parse.hpp"
#include "common/scheduling.hpp"
#include "common/statistics.hpp"
#include "common/timed_threads.hpp"
#include "common/validators.hpp"
#include "memory/pointer_chase.hpp"
#include "memory/triad.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t skew_bytes = 256;  // keeps x, y and z off the same offset in a 4 KiB page,
                                         // where loads would wait for stores they do not depend on
constexpr double sample_us = 2000;  // a sample lasts this long, so that clock and barriers vanish
// What is assumed when the time is announced: a rate of memory, and the passes beside a sample.
constexpr double usual_mb_per_s = 8000;
constexpr double passes_beside = 4;

struct Options {
  CommonOptions common;
  std::string sizes = "24K,96K,384K,1536K,6M,24M,96M,384M";
  std::string pages = "huge,memalign";
  std::string memory = "any";
  std::string types = "float,double";
  int threads = 0;

  std::vector<std::size_t> bytes;
  std::vector<std::string> kinds;
  std::vector<std::string> type_names;
};

struct Case {
  std::string pages;
  Stores stores = Stores::plain;
  std::vector<double> samples;        // microseconds a pass, slowest rank
  std::vector<double> limit_samples;  // the same again in each round, for the limit
  bool verified = true;
};

// What the pointer chase has found on one kind of pages.
struct Latency {
  double load_ns = 0;
  std::optional<double> misses;  // of all TLBs, of one load; nothing where they are not counted
};
constexpr int chase_samples = 5;
constexpr std::size_t chase_loads = 65536;  // of a sample at least: 1 ms and more
constexpr unsigned chase_seed = 20260101;

std::size_t array_bytes(std::size_t total) {
  return std::max(total / 3 / line_bytes * line_bytes, line_bytes);
}

std::size_t pool_bytes(std::size_t total) { return 3 * (array_bytes(total) + skew_bytes); }

// The integers are small enough that a*x + y is exact in both types, fused or not.
template <class T>
T x_value(std::size_t i) {
  return static_cast<T>(i & 1023);
}
template <class T>
T y_value(std::size_t i) {
  return static_cast<T>(i % 7);
}

// One block has the three arrays of one size.
template <class T>
struct Arrays {
  T* x;
  T* y;
  T* z;
  std::size_t count;

  Arrays(std::byte* pool, std::size_t total) : count(array_bytes(total) / sizeof(T)) {
    const std::size_t distance = array_bytes(total) + skew_bytes;
    x = reinterpret_cast<T*>(pool);
    y = reinterpret_cast<T*>(pool + distance);
    z = reinterpret_cast<T*>(pool + 2 * distance);
  }

  void fill() {
    for (std::size_t i = 0; i < count; ++i) {
      x[i] = x_value<T>(i);
      y[i] = y_value<T>(i);
    }
    std::fill_n(z, count, T(-1));
  }

  bool right(T a) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) wrong += z[i] != a * x_value<T>(i) + y_value<T>(i);
    return wrong == 0;
  }

  // Elements [begin, end) of one thread, whole cache lines.
  std::pair<std::size_t, std::size_t> share(int thread, int threads) const {
    const std::size_t per_line = line_bytes / sizeof(T);
    const std::size_t lines = count / per_line;
    const std::size_t k = static_cast<std::size_t>(thread);
    const std::size_t n = static_cast<std::size_t>(threads);
    return {lines * k / n * per_line, lines * (k + 1) / n * per_line};
  }
};

// Microseconds of one pass, over `passes` of them.
template <class T>
double pass_us(const Arrays<T>& arrays, TimedThreads& team, T a, Stores stores, int passes) {
  const double all = team.run([&](int thread) {
    const auto [begin, end] = arrays.share(thread, team.size());
    for (int pass = 0; pass < passes; ++pass) {
      triad(arrays.z + begin, arrays.x + begin, arrays.y + begin, a, end - begin, stores);
    }
  });
  return all / passes;
}

class Benchmark {
 public:
  Benchmark(const Options& options, const Ranks& ranks, Report& report)
      : options_(options),
        ranks_(ranks),
        report_(report),
        rounds_(options.common.rounds_or(15, 5)),
        budget_(options.common, ranks, expected()),
        team_(thread_count()) {}

  void run() {
    allocate();
    for (const std::string& type : options_.type_names) {
      type == "float" ? table<float>(type) : table<double>(type);
    }
    report_.summary(
        fmt::format("a*x+y on {}: {:.1f} GB/s in cache, {:.1f} GB/s from memory ({}), "
                    "{:.0f} % of the limit; {}",
                    options_.kinds.front(), best_gb_, largest_gb_, size_text(options_.bytes.back()),
                    largest_share_, verified_ ? "results verified" : "RESULTS WRONG"));
    if (!verified_) throw CollectiveError(ErrorCode::internal, "a*x+y: a result was wrong");
  }

 private:
  int thread_count() const {
    if (options_.threads > 0) return options_.threads;
    cpu_set_t set;
    CPU_ZERO(&set);
    const int cores = sched_getaffinity(0, sizeof set, &set) == 0
                          ? CPU_COUNT(&set)
                          : static_cast<int>(std::thread::hardware_concurrency());
    // Where ranks share the same cores, each takes its part of them.
    return std::max(1, options_.common.pin ? cores : cores / ranks_.node_size());
  }

  void allocate() {
    const std::size_t largest = *std::max_element(options_.bytes.begin(), options_.bytes.end());
    ranks_.collectively([&] {
      for (const std::string& kind : options_.kinds) {
        blocks_[kind] = page_block(kind, pool_bytes(largest));
        backings_[kind] = backing(kind, blocks_[kind]);
      }
    });
    for (const std::string& kind : options_.kinds) {
      report_.text(fmt::format("# pages {}\n", line(backings_[kind])));
    }
    report_.text(fmt::format("# {} thread{} a rank, up to {} rounds\n", team_.size(),
                             team_.size() == 1 ? "" : "s", rounds_));
    if (!misses_.refusal().empty()) {
      report_.text(fmt::format("# TLB misses are not counted: {}\n", misses_.refusal()));
    }
    budget_.announce(report_);
  }

  // One sample of the pointer chase. It overwrites the arrays; each sample of the triad fills them.
  Latency chase_once(const std::string& kind, std::size_t size) {
    const PointerChase chase(blocks_.at(kind).data(), size, chase_seed);
    const auto rounds = static_cast<int>(std::max<std::size_t>(chase_loads / chase.loads(), 1));
    const double loads = static_cast<double>(chase.loads()) * rounds;
    chase.go(1);  // what fits into the caches and the TLBs is there
    misses_.start();
    const double begin = now_us();
    verified_ = chase.go(rounds) == chase.begin() && verified_;
    Latency found{(now_us() - begin) * 1e3 / loads, std::nullopt};
    if (const auto misses = misses_.stop()) found.misses = static_cast<double>(*misses) / loads;
    return found;
  }

  // Medians of all kinds, measured in turn; of the slowest rank, and of the one with most misses.
  // Misses are known where every rank could count them.
  std::map<std::string, Latency> chase(std::size_t size) {
    std::map<std::string, std::vector<double>> times;
    std::map<std::string, std::vector<double>> misses;
    for (int i = 0; i < chase_samples; ++i) {
      for (const std::string& kind : options_.kinds) {
        const Latency one = chase_once(kind, size);
        times[kind].push_back(one.load_ns);
        if (one.misses) misses[kind].push_back(*one.misses);
      }
    }
    std::map<std::string, Latency> found;
    for (const std::string& kind : options_.kinds) {
      Latency& one = found[kind];
      one.load_ns = ranks_.max(summarize(times[kind]).median);
      const double most = ranks_.max(summarize(misses[kind]).median);
      if (ranks_.all(misses[kind].size() == chase_samples)) one.misses = most;
    }
    return found;
  }

  // A sample fills the arrays, goes over them once to warm the caches, and checks the result.
  std::vector<Expected> expected() const {
    const double columns = 2.0 * static_cast<double>(cases().size());  // with those of the limit
    std::vector<Expected> all;
    for (std::size_t type = 0; type < options_.type_names.size(); ++type) {
      for (const std::size_t bytes : options_.bytes) {
        const double pass = static_cast<double>(bytes) / usual_mb_per_s;
        all.push_back(sampling(columns, rounds_, sample_us, passes_beside * pass));
      }
    }
    return all;
  }

  std::vector<Case> cases() const {
    std::vector<Case> all;
    for (const std::string& kind : options_.kinds) {
      all.push_back({kind, Stores::plain, {}, {}, true});
    }
    if (has_streaming_stores()) {
      for (const std::string& kind : options_.kinds) {
        all.push_back({kind, Stores::streaming, {}, {}, true});
      }
    }
    return all;
  }

  template <class T>
  void sample(Case& one, std::vector<double>& samples, std::size_t size, int passes) {
    const T a = 3;
    Arrays<T> arrays(blocks_.at(one.pages).data(), size);
    arrays.fill();
    pass_us(arrays, team_, a, one.stores, 1);  // data back in the caches of the right cores
    ranks_.barrier();
    const double time = pass_us(arrays, team_, a, one.stores, passes);
    samples.push_back(ranks_.max(time));
    one.verified = one.verified && arrays.right(a);
  }

  template <class T>
  int calibrate(std::size_t size, double wanted_us) {
    Arrays<T> arrays(blocks_.begin()->second.data(), size);
    arrays.fill();
    int passes = 1;
    for (; passes < (1 << 20); passes *= 2) {
      // The best of three: one slow start of a thread must not pass for a long sample.
      double time = 0;
      for (int attempt = 0; attempt < 3; ++attempt) {
        const double again = pass_us(arrays, team_, T(3), Stores::plain, passes) * passes;
        time = attempt == 0 ? again : std::min(time, again);
      }
      if (ranks_.max(time) >= wanted_us) break;
    }
    return passes;
  }

  template <class T>
  void table(const std::string& type) {
    std::vector<std::string> headers = {"bytes", "size"};
    for (const std::string& kind : options_.kinds) headers.push_back(kind + " GB/s");
    for (const std::string& kind : options_.kinds) headers.push_back(kind + " ns/load");
    if (misses_.refusal().empty()) {
      for (const std::string& kind : options_.kinds) headers.push_back(kind + " misses/load");
    }
    for (const char* header : {"limit GB/s", "% of limit", "Gflop/s"}) headers.emplace_back(header);
    TextTable text(headers);
    for (std::size_t index = 0; index < options_.bytes.size(); ++index) {
      const std::size_t size = options_.bytes[index];
      budget_.begin();
      std::vector<Case> all = cases();
      const double samples = least_samples(2.0 * static_cast<double>(all.size()));
      const int passes = calibrate<T>(size, budget_.sample_us(sample_us, samples));
      int rounds = rounds_;
      const double begun = now_us();
      for (int round = 0; round < rounds; ++round) {
        if (round == 1) rounds = budget_.rounds(rounds_, now_us() - begun);
        report_.progress(fmt::format("a*x+y {} {}", type, size_text(size)),
                         (static_cast<double>(index) + static_cast<double>(round) / rounds) /
                             static_cast<double>(options_.bytes.size()));
        for (std::size_t i = 0; i < all.size(); ++i) {
          Case& one = all[(i + static_cast<std::size_t>(round)) % all.size()];
          sample<T>(one, one.samples, size, passes);
        }
        for (Case& one : all) sample<T>(one, one.limit_samples, size, passes);
      }
      text.add(rows(type, size, sizeof(T), all, chase(size)));
    }
    report_.text(
        fmt::format("\na*x + y, {}: all ranks and threads together; limit: the fastest of "
                    "plain and streaming stores on any of the pages, in samples of its own; load: "
                    "one thread goes from page to page at random\n{}",
                    type, text.text()));
  }

  // Writes the JSON rows of one size; the cells of its line in the table.
  std::vector<std::string> rows(const std::string& type, std::size_t size, std::size_t element,
                                std::vector<Case>& all,
                                const std::map<std::string, Latency>& latencies) {
    const double moved = 3.0 * static_cast<double>(array_bytes(size)) * ranks_.size();
    const std::size_t elements = array_bytes(size) / element;
    const double flops = 2.0 * static_cast<double>(elements) * ranks_.size();
    double limit_us = 0;
    for (const Case& one : all) {
      const double time = summarize(one.limit_samples).median;
      if (limit_us == 0 || time < limit_us) limit_us = time;
    }
    std::vector<std::string> cells = {std::to_string(3 * array_bytes(size)), size_text(size)};
    double first_us = 0;
    for (Case& one : all) {
      one.verified = ranks_.all(one.verified);
      verified_ = verified_ && one.verified;
      const Summary time = summarize(one.samples);
      const Latency& latency = latencies.at(one.pages);
      Json row = {{"bench", "memory"},
                  {"op", "a*x+y"},
                  {"type", type},
                  {"bytes", 3 * array_bytes(size)},
                  {"ranks", ranks_.size()},
                  {"threads", team_.size()},
                  {"pages", one.pages},
                  {"stores", one.stores == Stores::plain ? "plain" : "streaming"},
                  {"buffers", "hot"},
                  {"page_backing", to_json(backings_.at(one.pages))},
                  {"time_us", to_json(time)},
                  {"mb_per_s", std::round(mb_per_s(moved, time.median))},
                  {"gflops", flops / time.median / 1e3},
                  {"limit_us", limit_us},
                  {"limit_percent", 100 * limit_us / time.median},
                  {"load_ns", latency.load_ns},
                  {"verified", one.verified}};
      if (latency.misses) row["tlb_misses_per_load"] = *latency.misses;
      report_.row(row);
      if (one.stores != Stores::plain) continue;
      if (first_us == 0) first_us = time.median;
      cells.push_back(fmt::format("{:.2f}", mb_per_s(moved, time.median) / 1e3));
    }
    for (const std::string& kind : options_.kinds) {
      cells.push_back(fmt::format("{:.2f}", latencies.at(kind).load_ns));
    }
    for (const std::string& kind : options_.kinds) {
      if (!misses_.refusal().empty()) break;  // no columns of them
      const auto misses = latencies.at(kind).misses;
      cells.push_back(misses ? fmt::format("{:.3f}", *misses) : "-");  // another rank cannot count
    }
    largest_gb_ = mb_per_s(moved, first_us) / 1e3;
    largest_share_ = 100 * limit_us / first_us;
    best_gb_ = std::max(best_gb_, largest_gb_);
    cells.push_back(fmt::format("{:.2f}", mb_per_s(moved, limit_us) / 1e3));
    cells.push_back(fmt::format("{:.0f}", largest_share_));
    cells.push_back(fmt::format("{:.2f}", flops / first_us / 1e3));
    return cells;
  }

  const Options& options_;
  const Ranks& ranks_;
  Report& report_;
  int rounds_;
  Budget budget_;
  TimedThreads team_;
  std::map<std::string, PageBlock> blocks_;
  TlbMissCounter misses_;
  std::map<std::string, BackingReport> backings_;
  double best_gb_ = 0;
  double largest_gb_ = 0;
  double largest_share_ = 0;
  bool verified_ = true;
};

void describe(CLI::App& app, Options& options) {
  app.add_option("--sizes", options.sizes,
                 "Bytes of x, y and z together, rising: from the first cache to beyond the last")
      ->type_name("SIZE,...")
      ->capture_default_str();
  app.add_option("--pages", options.pages,
                 "Kinds of pages, one column each: huge, memalign, small, thp "
                 "or a source such as hugetlb-memfd, shmem-huge")
      ->type_name("KIND,...")
      ->capture_default_str();
  app.add_option("--memory", options.memory, memory_help)
      ->type_name("PLACE,...")
      ->capture_default_str();
  app.add_option("--type", options.types, "Types of the elements: float, double")
      ->type_name("TYPE,...")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads a rank; default: its share of the cores")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  add_common_options(app, options.common);
  app.footer(
      "Each line of the table is z = a*x + y over arrays of one size, counted as three times the\n"
      "array (2 loads, 1 store), as Grid's memory benchmark and STREAM's triad count it. Beside\n"
      "it one thread loads a line of each 4 KiB in random order: what walks of the page table\n"
      "cost on each kind of pages, and how many there are where the processor's counters are "
      "open.\n"
      "Examples:\n"
      "  ropewalk-bench-memory --quick\n"
      "  ropewalk-bench-memory --sizes 1M,64M --pages huge,small --threads 1 --json memory.json");
}

void check(Options& options) {
  if (options.common.quick && options.sizes == Options().sizes) options.sizes = "24K,384K,6M,96M";
  if (options.common.quick && options.types == Options().types) options.types = "float";
  options.bytes = byte_list("--sizes", options.sizes);
  options.kinds = placed(words("--pages", options.pages, page_kinds()), options.memory);
  options.type_names = words("--type", options.types, {"float", "double"});
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  return run_main<Options>(
      "Memory bandwidth of a*x + y by size and kind of page.", "ropewalk-bench-memory",
      Need::if_run,
      [](const Options& options, const Ranks& ranks, Report& report) {
        Benchmark(options, ranks, report).run();
      },
      argc, argv);
}
