// Where results go: text on the standard output of rank 0, JSON lines, CSV, and a progress line.
#pragma once

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "common/ranks.hpp"
#include "common/statistics.hpp"
#include "common/table.hpp"

namespace ropewalk::bench {

struct ReportOptions {
  std::string program;            // "ropewalk-bench-comms"
  std::string command;            // as it was started
  std::string json;               // file, or empty
  std::string csv;                // file, or empty
  std::string progress = "auto";  // "auto": where standard error is a terminal; "always", "never"
};

// Only rank 0 writes. Rows are in the file as soon as they are known: a run that is cut short
// leaves what it has measured.
class Report {
 public:
  // Collective. Throws Error(argument) on every rank where a file cannot be written.
  Report(const Ranks& ranks, const ReportOptions& options, Json machine);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  bool speaks() const noexcept { return speaks_; }
  void text(const std::string& text);  // clears the progress line first; flushes
  void row(const Json& row);           // one JSON line, and one CSV line at the end
  // share of the work done, 0 to 1; with the time since the start and, by the share, to the end.
  void progress(const std::string& what, double share);
  // How long the run will take, for the heading; summary() compares it with what it took.
  void announce(const std::string& text, double seconds);
  // "summary: ..." as the last line; writes the CSV file.
  void summary(const std::string& line);

 private:
  void clear_progress();

  bool speaks_;
  bool progress_ = false;
  bool progress_shown_ = false;
  double begun_us_;
  double announced_seconds_ = 0;  // 0: nothing was announced
  std::ofstream json_;
  std::ofstream csv_;
  std::vector<Json> rows_;
};

// Part of the work that a progress line shows: `at(0.5)` is half of this part.
struct Share {
  double begin = 0;
  double width = 1;
  double at(double part) const { return begin + width * part; }
  Share of(int index, int count) const { return {at(double(index) / count), width / count}; }
};

// "1 min 5 s", "12 s", "0.5 s".
std::string duration_text(double seconds);

// {median, min, p99, n}, and {mean, error, max} where the report shows them.
enum class Means { no, yes };
Json to_json(const Summary& microseconds, Means means = Means::no);

}  // namespace ropewalk::bench
