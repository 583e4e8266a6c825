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
  // Collective: Error(argument) on every rank where a file cannot be written.
  Report(const Ranks& ranks, const ReportOptions& options, Json machine);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  bool speaks() const noexcept { return speaks_; }
  void text(const std::string& text);  // clears the progress line first; flushes
  void row(const Json& row);           // one JSON line, and one CSV line at the end
  void progress(const std::string& what, double share);  // share of the work done, 0 to 1
  // "summary: ..." as the last line; writes the CSV file.
  void summary(const std::string& line);

 private:
  void clear_progress();

  bool speaks_;
  bool progress_ = false;
  bool progress_shown_ = false;
  std::ofstream json_;
  std::ofstream csv_;
  std::vector<Json> rows_;
};

Json to_json(const Summary& microseconds);  // {median, min, p99, n}

}  // namespace ropewalk::bench
