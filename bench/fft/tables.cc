#include "fft/tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/parse.hpp"
#include "common/report.hpp"
#include "common/statistics.hpp"

namespace ropewalk::bench {
namespace {

// The fastest of MPI's ways or of ropewalk's; null where none was measured.
const FftTimes* best(const FftResult& result, bool by_mpi) {
  const FftTimes* found = nullptr;
  for (const FftTimes& one : result.times) {
    if (is_by_mpi(one.way) != by_mpi) continue;
    if (found == nullptr || median(one.us) < median(found->us)) found = &one;
  }
  return found;
}

// The time of MPI's fastest way over the other; 0 where nothing took time.
double ratio(const std::vector<double>& plain, const std::vector<double>& other) {
  return median(other) > 0 ? median(plain) / median(other) : 0;
}

std::string dots(const FftCase& one) {
  return dotted(std::vector<int>(one.cells.begin(), one.cells.end()));
}
std::string rank_dots(const FftCase& one) {
  return fmt::format("{}.{}", one.ranks[0], one.ranks[1]);
}
const char* numbers(const FftCase& one) { return one.is_real ? "real" : "complex"; }
const char* decomposition(const FftCase& one) { return one.ranks[1] == 1 ? "slab" : "pencil"; }

std::string ratio_text(double value) { return value > 0 ? fmt::format("{:.2f}", value) : "-"; }

}  // namespace

std::vector<Json> rows(const FftOptions& options, const Ranks& ranks, const FftResult& result) {
  std::vector<Json> all;
  const FftCase& measured = result.measured;
  const FftTimes* plain = best(result, true);
  for (const FftTimes& one : result.times) {
    Json row = {{"bench", "fft"},
                {"numbers", numbers(measured)},
                {"grid", dots(measured)},
                {"cells", volume(measured.cells)},
                {"decomposition", decomposition(measured)},
                {"mpi_grid", rank_dots(measured)},
                {"ranks", ranks.size()},
                {"threads", options.threads},
                {"library", options.library},
                {"mpi", ranks.library()},
                {"strategy", one.way},
                {"pages", result.backing.all_huge ? "huge" : "small"},
                {"page_backing", to_json(result.backing)},
                {"buffers", "hot"},
                {"iterations", one.iterations},
                {"bytes", result.bytes},
                {"time_us", to_json(summarize(one.us))},
                {"transposes_us", median(one.transposes_us)},
                {"local_us", median(one.local_us)},
                {"mb_per_s", mb_per_s(result.bytes, median(one.transposes_us))},
                {"serially_checked", result.is_serial_checked},
                {"verified", result.wrong.empty()}};
    if (plain != nullptr && !is_by_mpi(one.way)) {
      row["plain_us"] = median(plain->us);
      row["plain_way"] = plain->way;
      row["ratio"] = ratio(plain->us, one.us);
      row["transposes_ratio"] = ratio(plain->transposes_us, one.transposes_us);
    }
    all.push_back(std::move(row));
  }
  return all;
}

std::string table(const std::vector<FftResult>& results) {
  TextTable lines({"grid", "numbers", "ranks", "way", "step", "transposes", "local",
                   "ratio of transposes", "ratio"},
                  4);
  for (const FftResult& result : results) {
    const FftTimes* plain = best(result, true);
    for (const FftTimes& one : result.times) {
      const bool has_ratio = plain != nullptr && !is_by_mpi(one.way);
      lines.add({dots(result.measured), numbers(result.measured), rank_dots(result.measured),
                 one.way, fmt::format("{:.1f}", median(one.us)),
                 fmt::format("{:.1f}", median(one.transposes_us)),
                 fmt::format("{:.1f}", median(one.local_us)),
                 has_ratio ? ratio_text(ratio(plain->transposes_us, one.transposes_us)) : "-",
                 has_ratio ? ratio_text(ratio(plain->us, one.us)) : "-"});
    }
  }
  return "\nmicroseconds of a step: a transform and its inverse\n" + lines.text();
}

std::string summary(const std::vector<FftResult>& results) {
  double least = 0;
  double most = 0;
  for (const FftResult& result : results) {
    const FftTimes* ours = best(result, false);
    const FftTimes* plain = best(result, true);
    if (ours == nullptr || plain == nullptr) continue;
    const double one = ratio(plain->us, ours->us);
    least = least == 0 ? one : std::min(least, one);
    most = std::max(most, one);
  }
  const bool right =
      std::ranges::all_of(results, [](const FftResult& one) { return one.wrong.empty(); });
  const std::string ratios =
      least > 0 ? fmt::format("a step is faster than by the best MPI way by {:.2f} to {:.2f}",
                              least, most)
                : "no ways to compare";
  return ratios + (right ? "; all data verified" : "; TRANSFORMS WRONG");
}

}  // namespace ropewalk::bench
