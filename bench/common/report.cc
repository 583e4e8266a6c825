// Output of the benchmarks; see report.hpp.
#include "common/report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "common/timed_threads.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

void open(std::ofstream& file, const std::string& option, const std::string& path) {
  if (path.empty()) return;
  file.open(path, std::ios::trunc);
  if (!file) {
    throw Error(ErrorCode::argument,
                fmt::format("{}: cannot write \"{}\": {}; name a file in a folder that exists and "
                            "that you may write to",
                            option, path, std::strerror(errno)));
  }
}

// Six significant digits say more than any clock here knows, and keep lines readable.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * scale) / scale;
}

}  // namespace

Report::Report(const Ranks& ranks, const ReportOptions& options, Json machine)
    : speaks_(ranks.rank() == 0), begun_us_(now_us()) {
  ranks.collectively([&] {
    if (!speaks_) return;
    open(json_, "--json", options.json);
    open(csv_, "--csv", options.csv);
  });
  progress_ = speaks_ && (options.progress == "always" ||
                          (options.progress == "auto" && isatty(STDERR_FILENO) == 1));
  if (json_.is_open()) json_ << machine.dump() << std::endl;
}

Report::~Report() { clear_progress(); }

void Report::clear_progress() {
  if (!progress_shown_) return;
  std::fputs("\r\033[K", stderr);  // to the start of the line, and erase it
  std::fflush(stderr);
  progress_shown_ = false;
}

void Report::text(const std::string& words) {
  if (!speaks_) return;
  clear_progress();
  std::fputs(words.c_str(), stdout);
  std::fflush(stdout);
}

void Report::row(const Json& row) {
  if (!speaks_) return;
  if (json_.is_open()) json_ << row.dump() << std::endl;
  if (csv_.is_open()) rows_.push_back(row);
}

void Report::progress(const std::string& what, double share) {
  if (!progress_) return;
  const double seconds = (now_us() - begun_us_) / 1e6;
  std::string times = duration_text(seconds);
  if (share > 0.02 && seconds > 1) {
    times += fmt::format(", about {} left", duration_text(seconds * (1 / share - 1)));
  }
  std::fputs(fmt::format("\r\033[K{:3.0f} % {} ({})", 100 * share, what, times).c_str(), stderr);
  std::fflush(stderr);
  progress_shown_ = true;
}

void Report::announce(const std::string& text_of_time, double seconds) {
  announced_seconds_ = seconds;
  text(fmt::format("# time: {}\n", text_of_time));
}

void Report::summary(const std::string& line) {
  if (announced_seconds_ > 0) {
    text(fmt::format("# took {}; announced: about {}\n",
                     duration_text((now_us() - begun_us_) / 1e6),
                     duration_text(announced_seconds_)));
  }
  text("summary: " + line + "\n");
  if (csv_.is_open()) csv_ << csv(rows_) << std::flush;
}

std::string duration_text(double seconds) {
  constexpr double shown_in_tenths = 9.95;
  if (seconds < shown_in_tenths) return fmt::format("{:.1f} s", std::max(seconds, 0.0));
  const long whole = std::lround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

Json to_json(const Summary& t, Means means) {
  Json json = {
      {"median", rounded(t.median)}, {"min", rounded(t.min)}, {"p99", rounded(t.p99)}, {"n", t.n}};
  if (t.high95 > 0) json["interval_95"] = {rounded(t.low95), rounded(t.high95)};
  if (means == Means::yes) {
    json["mean"] = rounded(t.mean);
    json["error"] = rounded(t.error);
    json["max"] = rounded(t.max);
  }
  return json;
}

}  // namespace ropewalk::bench
