// ropewalk-bench-pages: what a transfer costs from 4 KiB pages that lie scattered, as on a node
// that has been running for a while, and from verified 2 MiB pages (Boyle et al. 2017, section II).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include "common/budget.hpp"
#include "common/machine.hpp"
#include "common/main.hpp"
#include "common/pages.hpp"
#include "common/parse.hpp"
#include "common/pattern.hpp"
#include "pages/transfer.hpp"

namespace ropewalk::bench {
namespace {

constexpr double sample_us = 3000;            // steady samples last about this long
constexpr double usual_fresh_mb_per_s = 700;  // assumed when the time is announced
constexpr std::size_t pool_factor = 6;  // fragmented memory for each byte of the largest buffer:
                                        // two buffers a rank, and pages in transit behind them

struct Options {
  CommonOptions common;
  std::string sizes = "64K,256K,1M,4M,16M,64M";
  std::string paths = "mapped,kernel,mpi";
  std::vector<std::size_t> bytes;
  std::vector<std::string> path_names;
};

const std::vector<std::string> page_names = {"scattered", "huge"};

// All samples of one path and size: [pages] of fresh and steady transfers.
struct Samples {
  std::map<std::string, std::vector<double>> fresh;
  std::map<std::string, std::vector<double>> steady;
};

class Benchmark {
 public:
  Benchmark(const Options& options, const Ranks& ranks, Report& report)
      : options_(options),
        ranks_(ranks),
        report_(report),
        rounds_(options.common.rounds_or(15, 5)),
        largest_(*std::max_element(options.bytes.begin(), options.bytes.end())),
        budget_(options.common, ranks, expected()) {}

  void run() {
    check_paths();
    std::unique_ptr<FragmentedMemory> fragmented;
    ranks_.collectively([&] {
      check_memory();
      fragmented = std::make_unique<FragmentedMemory>(pool_factor * largest_);
    });
    show_backing();
    budget_.announce(report_);
    for (const auto& path : paths()) measure(*path);
    report_.summary(worst_ + (verified_ ? "; all data verified" : "; DATA WRONG"));
    if (!verified_) throw CollectiveError(ErrorCode::internal, "transfer: data arrived wrong");
  }

 private:
  bool wanted(const char* name) const {
    const auto& names = options_.path_names;
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  void check_paths() const {
    if (ranks_.size() > 1 ? wanted("mpi") : wanted("mapped") || wanted("kernel")) return;
    throw Error(ErrorCode::argument,
                fmt::format("--paths: {} cannot run with {} rank{}; mapped and kernel run in one "
                            "process, mpi under ropewalk run -n 2",
                            options_.paths, ranks_.size(), ranks_.size() == 1 ? "" : "s"));
  }

  void check_memory() const {
    const std::size_t wanted =
        (2 * pool_factor + 4) * largest_ * static_cast<std::size_t>(ranks_.node_size());
    const std::size_t available = available_memory();
    if (available == 0 || wanted < available / 10 * 9) return;
    throw Error(ErrorCode::memory,
                fmt::format("--sizes: fragmented memory for {} takes {} on this node, and {} are "
                            "free; give smaller sizes or fewer ranks",
                            size_text(largest_), size_text(wanted), size_text(available)));
  }

  std::vector<std::unique_ptr<TransferPath>> paths() const {
    std::vector<std::unique_ptr<TransferPath>> all;
    if (ranks_.size() > 1) {
      if (wanted("mpi")) all.push_back(std::make_unique<MpiPath>(ranks_));
      return all;
    }
    if (wanted("mapped")) all.push_back(std::make_unique<MappedPath>(largest_));
    if (wanted("kernel")) all.push_back(std::make_unique<KernelPath>(largest_));
    return all;
  }

  // Shows one buffer of each kind: what the kernel gave, and how it lies.
  void show_backing() {
    for (const std::string& pages : page_names) {
      ranks_.collectively([&] {
        const PageBuffer buffer(pages, largest_);
        fill_pattern(buffer.data(), largest_, 1);
        backings_[pages] = backing_of(pages, buffer.data(), largest_);
        runs_[pages] = contiguity(buffer.data(), largest_);
      });
      report_.text(fmt::format("# pages {}; {}\n", line(backings_[pages]), text(runs_[pages])));
    }
    report_.text(
        fmt::format("# up to {} rounds; fresh: new buffers, first touch, transfer and release; "
                    "steady: the transfer alone\n",
                    rounds_));
  }

  // For each path and size there are two kinds of pages, each fresh and steady.
  std::vector<Expected> expected() const {
    const double kinds = static_cast<double>(page_names.size());
    const std::size_t paths =
        ranks_.size() > 1 ? 1 : (wanted("mapped") ? 1U : 0U) + (wanted("kernel") ? 1U : 0U);
    std::vector<Expected> all;
    for (std::size_t path = 0; path < paths; ++path) {
      for (const std::size_t bytes : options_.bytes) {
        const double fresh = static_cast<double>(bytes) / usual_fresh_mb_per_s;
        all.push_back(sampling(kinds, rounds_, sample_us, fresh));
      }
    }
    return all;
  }

  int steady_count(TransferPath& path, std::size_t bytes) {
    const double samples = least_samples(static_cast<double>(page_names.size()));
    const double lasts = budget_.sample_us(sample_us, samples);
    const double once = std::max(path.steady("huge", bytes, 1), 0.1);
    return static_cast<int>(std::clamp(ranks_.max(lasts / once), 1.0, 1000.0));
  }

  Samples sample(TransferPath& path, std::size_t bytes, double share) {
    budget_.begin();
    Samples all;
    const int count = steady_count(path, bytes);
    int rounds = rounds_;
    const double begun = now_us();
    for (int round = 0; round < rounds; ++round) {
      if (round == 1) rounds = budget_.rounds(rounds_, now_us() - begun);
      report_.progress(fmt::format("pages {} {}", path.name(), size_text(bytes)), share);
      for (std::size_t i = 0; i < page_names.size(); ++i) {
        const std::string& pages =
            page_names[(i + static_cast<std::size_t>(round)) % page_names.size()];
        all.fresh[pages].push_back(path.fresh(pages, bytes));
        all.steady[pages].push_back(path.steady(pages, bytes, count));
      }
    }
    return all;
  }

  void measure(TransferPath& path) {
    TextTable table({"bytes", "size", "fresh scattered us", "fresh huge us", "ratio",
                     "steady scattered us", "steady huge us", "ratio", "ns/4 KiB page"});
    const double total = static_cast<double>(options_.bytes.size());
    for (std::size_t i = 0; i < options_.bytes.size(); ++i) {
      const std::size_t bytes = options_.bytes[i];
      const Samples all = sample(path, bytes, static_cast<double>(i) / total);
      verified_ = ranks_.all(path.verified()) && verified_;
      write_rows(path, bytes, all);
      table.add(cells(bytes, all));
      if (bytes == largest_) note(path, all);
    }
    report_.text(fmt::format("\n{}\n{}", title(path), table.text()));
  }

  static std::string title(const TransferPath& path) {
    if (path.name() == "mapped") return "mapped: a second thread maps the buffer and copies it out";
    if (path.name() == "kernel") return "kernel: process_vm_readv looks up and pins every page";
    return "mpi: isend and irecv both ways between pairs of ranks, slowest rank";
  }

  static std::vector<std::string> cells(std::size_t bytes, const Samples& all) {
    const double fresh[] = {summarize(all.fresh.at("scattered")).median,
                            summarize(all.fresh.at("huge")).median};
    const double steady[] = {summarize(all.steady.at("scattered")).median,
                             summarize(all.steady.at("huge")).median};
    const std::size_t pages = (bytes + 4095) / 4096;
    return {std::to_string(bytes), size_text(bytes), fmt::format("{:.1f}", fresh[0]),
            fmt::format("{:.1f}", fresh[1]), fmt::format("{:.2f}", fresh[0] / fresh[1]),
            fmt::format("{:.1f}", steady[0]), fmt::format("{:.1f}", steady[1]),
            fmt::format("{:.2f}", steady[0] / steady[1]),
            // What a page costs that was not there before, beyond the transfer itself.
            fmt::format("{:.0f}", (fresh[0] - steady[0]) / static_cast<double>(pages) * 1000)};
  }

  void write_rows(const TransferPath& path, std::size_t bytes, const Samples& all) {
    for (const std::string& pages : page_names) {
      for (const bool fresh : {true, false}) {
        const Summary time = summarize(fresh ? all.fresh.at(pages) : all.steady.at(pages));
        const Summary huge = summarize(fresh ? all.fresh.at("huge") : all.steady.at("huge"));
        Json row = {{"bench", "pages"},
                    {"bytes", bytes},
                    {"ranks", ranks_.size()},
                    {"mpi", ranks_.library()},
                    {"pages", pages},
                    {"page_backing", to_json(backings_.at(pages))},
                    {"transfer", fresh ? "fresh" : "steady"},
                    {"buffers", fresh ? "cold" : "hot"},
                    {"time_us", to_json(time)},
                    {"mb_per_s", mb_per_s(static_cast<double>(bytes), time.median)},
                    {"huge_us", huge.median},
                    {"ratio_to_huge", time.median / huge.median},
                    {"path", path.name()},
                    {"verified", verified_}};
        if (runs_.at(pages)) row["mean_physical_run_bytes"] = runs_.at(pages)->mean_run_bytes();
        report_.row(row);
      }
    }
  }

  void note(const TransferPath& path, const Samples& all) {
    const double fresh =
        summarize(all.fresh.at("scattered")).median / summarize(all.fresh.at("huge")).median;
    const double steady =
        summarize(all.steady.at("scattered")).median / summarize(all.steady.at("huge")).median;
    worst_ += fmt::format(
        "{}{} of scattered 4 KiB pages by {} cost {:.2f} x huge pages fresh, "
        "{:.2f} x steady",
        worst_.empty() ? "" : "; ", size_text(largest_), path.name(), fresh, steady);
  }

  const Options& options_;
  const Ranks& ranks_;
  Report& report_;
  int rounds_;
  std::size_t largest_;
  Budget budget_;
  std::map<std::string, BackingReport> backings_;
  std::map<std::string, std::optional<Contiguity>> runs_;
  std::string worst_;
  bool verified_ = true;
};

void describe(CLI::App& app, Options& options) {
  app.add_option("--sizes", options.sizes, "Bytes of a transfer")
      ->type_name("SIZE,...")
      ->capture_default_str();
  app.add_option("--paths", options.paths,
                 "Started alone: mapped (a peer thread maps the buffer and copies), kernel "
                 "(process_vm_readv pins every page). Under MPI: mpi (isend and irecv)")
      ->type_name("NAME,...")
      ->capture_default_str();
  add_common_options(app, options.common);
  app.footer(
      "A node that has been running for a while has its free memory in scattered 4 KiB pages. The\n"
      "program makes such memory, takes buffers from it and from the ladder of 2 MiB pages, in "
      "turn,\n"
      "and shows what one transfer costs with fresh buffers and with known ones.\n"
      "Examples:\n"
      "  ropewalk-bench-pages --quick\n"
      "  ropewalk run -n 2 -- ropewalk-bench-pages --sizes 1M,16M --json pages.json");
}

void check(Options& options) {
  if (options.common.quick && options.sizes == Options().sizes) options.sizes = "64K,1M,16M";
  options.bytes = byte_list("--sizes", options.sizes);
  options.path_names = words("--paths", options.paths, {"mapped", "kernel", "mpi"});
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  return run_main<Options>(
      "Cost of a transfer from scattered 4 KiB pages and from 2 MiB pages.", "ropewalk-bench-pages",
      Need::if_run,
      [](const Options& options, const Ranks& ranks, Report& report) {
        Benchmark(options, ranks, report).run();
      },
      argc, argv);
}
