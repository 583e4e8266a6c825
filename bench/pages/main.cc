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
  std::string pages = "scattered";
  std::vector<std::string> path_names;
  std::vector<std::string> kinds;  // those of --pages, and huge at the end
};

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
    for (const std::string& pages : options_.kinds) {
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

  // For each path and size there are all kinds of pages, each fresh and steady.
  std::vector<Expected> expected() const {
    const double kinds = static_cast<double>(options_.kinds.size());
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
    const double samples = least_samples(static_cast<double>(options_.kinds.size()));
    const double lasts = budget_.sample_us(sample_us, samples);
    const double once = std::max(path.steady("huge", bytes, 1), 0.1);
    return static_cast<int>(std::clamp(ranks_.max(lasts / once), 1.0, 1000.0));
  }

  Samples sample(TransferPath& path, std::size_t bytes, double share) {
    budget_.begin();
    Samples all;
    const int count = steady_count(path, bytes);
    const std::vector<std::string> kinds = kinds_of(path);
    int rounds = rounds_;
    const double begun = now_us();
    for (int round = 0; round < rounds; ++round) {
      if (round == 1) rounds = budget_.rounds(rounds_, now_us() - begun);
      report_.progress(fmt::format("pages {} {}", path.name(), size_text(bytes)), share);
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        const std::string& pages = kinds[(i + static_cast<std::size_t>(round)) % kinds.size()];
        all.fresh[pages].push_back(path.fresh(pages, bytes));
        all.steady[pages].push_back(path.steady(pages, bytes, count));
      }
    }
    return all;
  }

  void measure(TransferPath& path) {
    const std::vector<std::string> kinds = kinds_of(path);
    TextTable table(headers(kinds));
    const double total = static_cast<double>(options_.bytes.size());
    for (std::size_t i = 0; i < options_.bytes.size(); ++i) {
      const std::size_t bytes = options_.bytes[i];
      const Samples all = sample(path, bytes, static_cast<double>(i) / total);
      verified_ = ranks_.all(path.verified()) && verified_;
      write_rows(path, bytes, all);
      table.add(cells(kinds, bytes, all));
      if (bytes == largest_) note(path, all);
    }
    report_.text(fmt::format("\n{}\n{}", title(path), table.text()));
  }

  static std::string title(const TransferPath& path) {
    if (path.name() == "mapped") return "mapped: a second thread maps the buffer and copies it out";
    if (path.name() == "kernel") return "kernel: process_vm_readv looks up and pins every page";
    return "mpi: isend and irecv both ways between pairs of ranks, slowest rank";
  }

  std::vector<std::string> kinds_of(const TransferPath& path) const {
    std::vector<std::string> kinds = options_.kinds;
    std::erase_if(kinds, [&](const std::string& pages) { return !path.takes(pages); });
    return kinds;
  }

  static std::vector<std::string> headers(const std::vector<std::string>& kinds) {
    std::vector<std::string> all = {"bytes", "size"};
    for (const char* transfer : {"fresh", "steady"}) {
      for (const std::string& pages : kinds) {
        all.push_back(fmt::format("{} {} us", transfer, pages));
      }
      for (const std::string& pages : kinds) {
        if (pages != "huge") all.push_back(pages + "/huge");
      }
    }
    for (const std::string& pages : kinds) {
      if (pages != "huge") all.push_back(pages + " ns/4 KiB page");
    }
    return all;
  }

  static std::vector<std::string> cells(const std::vector<std::string>& kinds, std::size_t bytes,
                                        const Samples& all) {
    std::vector<std::string> line = {std::to_string(bytes), size_text(bytes)};
    for (const auto* samples : {&all.fresh, &all.steady}) {
      const auto median = [&](const std::string& pages) {
        return summarize(samples->at(pages)).median;
      };
      for (const std::string& pages : kinds) line.push_back(fmt::format("{:.1f}", median(pages)));
      for (const std::string& pages : kinds) {
        if (pages != "huge") line.push_back(fmt::format("{:.2f}", median(pages) / median("huge")));
      }
    }
    const std::size_t count = (bytes + 4095) / 4096;
    for (const std::string& pages : kinds) {
      if (pages == "huge") continue;
      // What a page costs that was not there before, beyond the transfer itself.
      const double more =
          summarize(all.fresh.at(pages)).median - summarize(all.steady.at(pages)).median;
      line.push_back(fmt::format("{:.0f}", more / static_cast<double>(count) * 1000));
    }
    return line;
  }

  void write_rows(const TransferPath& path, std::size_t bytes, const Samples& all) {
    for (const std::string& pages : kinds_of(path)) {
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
    for (const std::string& pages : kinds_of(path)) {
      if (pages == "huge") continue;
      const auto times_huge = [&](const auto& samples) {
        return summarize(samples.at(pages)).median / summarize(samples.at("huge")).median;
      };
      worst_ +=
          fmt::format("{}{} of {} pages by {} cost {:.2f} x huge pages fresh, {:.2f} x steady",
                      worst_.empty() ? "" : "; ", size_text(largest_),
                      pages == "scattered" ? "scattered 4 KiB" : pages, path.name(),
                      times_huge(all.fresh), times_huge(all.steady));
    }
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
  app.add_option(
         "--pages", options.pages,
         "Pages to compare with huge ones: scattered (4 KiB, in fragmented memory), thp (what "
         "the system gives unasked; the path mapped needs memory that is shared, and leaves "
         "them out)")
      ->type_name("KIND,...")
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
  options.kinds = words("--pages", options.pages, {"scattered", "thp"});
  options.kinds.emplace_back("huge");
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
