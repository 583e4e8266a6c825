// The frame of every benchmark program: options that all have, start of the ranks, and errors that
// end all ranks with a message from rank 0 alone.
#pragma once

#include <functional>
#include <string>

#include "common/ranks.hpp"
#include "common/report.hpp"

namespace CLI {
class App;
}

namespace ropewalk::bench {

struct CommonOptions {
  std::string json;
  std::string csv;
  std::string progress = "auto";
  bool quick = false;
  bool pin = false;
  bool keep_priority = false;
  int rounds = 0;           // 0: the program's own choice
  double time_seconds = 0;  // 0: default_seconds, or no limit where rounds are given

  // A default run ends within two minutes, with start, set-up and tables.
  static constexpr double default_seconds = 100;

  int rounds_or(int full, int quick_rounds) const {
    if (rounds > 0) return rounds;
    return quick ? quick_rounds : full;
  }
};
void add_common_options(CLI::App& app, CommonOptions& options);

struct Program {
  CLI::App* app = nullptr;
  CommonOptions* common = nullptr;
  Need need = Need::mpi;
  // After parsing, before MPI is up: checks the values, throws Error(argument). Returns whether
  // comm threads will be used.
  std::function<bool()> check;
  std::function<void(const Ranks&, Report&)> body;
};

// Exit status: 0, 2 for the command line, 1 for all else; the same on every rank.
int run(const Program& program, int argc, char** argv);

}  // namespace ropewalk::bench
