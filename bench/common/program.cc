// Start, options and end of a benchmark program; see program.hpp.
#include "common/program.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/machine.hpp"
#include "common/parse.hpp"
#include "common/scheduling.hpp"
#include "common/validators.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr int wrong_command_line = 2;
constexpr int failed = 1;
const char* const more = "Run with --help for more.";

std::string command_line(int argc, char** argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) {
    std::string word = argv[i];
    // The folder says where somebody keeps the program, not what was measured.
    if (i == 0) word.erase(0, word.find_last_of('/') + 1);
    text += (i == 0 ? "" : " ") + word;
  }
  return text;
}

// Help as wide as a page.
class PageFormatter : public CLI::Formatter {
 public:
  PageFormatter() { column_width(left); }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(CLI::Formatter::make_option_desc(option));
  }

 private:
  static constexpr std::size_t left = 28;
  static constexpr std::size_t page = 98;

  static std::string wrapped(const std::string& text) {
    std::string made;
    std::size_t used = 0;
    for (const std::string& word : split(text, ' ')) {
      if (used > 0 && used + 1 + word.size() > page - left) {
        made += '\n';
        used = 0;
      } else if (used > 0) {
        made += ' ';
        ++used;
      }
      made += word;
      used += word.size();
    }
    return made;
  }
};

void complain(const std::string& program, const std::string& message) {
  std::fputs(fmt::format("{}: {}\n", program, message).c_str(), stderr);
}

// Tells what is wrong with the command line, once, and returns the status to exit with. Where
// another rank fails before rank 0 has written, the launcher may end rank 0 (Open MPI's does). So
// the others leave rank 0 a second. They fail all the same: rank 0 may have found nothing wrong.
int refuse(const Program& program, const std::string& message) {
  if (launcher_rank() == 0) {
    complain(program.app->get_name(), fmt::format("{}\n{}", message, more));
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return wrong_command_line;
}

// Returns the exit status where the program must end, otherwise nothing.
std::optional<int> parse(const Program& program, int argc, char** argv) {
  try {
    program.app->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help
      if (launcher_rank() == 0) program.app->exit(error);
      return 0;
    }
    return refuse(program, error.what());
  }
}

// Errors of these kinds come from checks that the library, or collectively(), makes on all ranks.
bool joint(const Error& error) {
  return error.code() == ErrorCode::argument || error.code() == ErrorCode::memory ||
         error.code() == ErrorCode::unsupported;
}

// Returns the variables that the MPI was started with, as `ropewalk bench` tells them
// (python/ropewalk/bench/plain.py).
std::string settings() {
  const char* told = std::getenv("ROPEWALK_BENCH_SETTINGS");
  return told != nullptr ? told : "unknown (not started by `ropewalk bench`)";
}

void measure(const Program& program, const Ranks& ranks, const std::string& command) {
  const CommonOptions& common = *program.common;
  ranks.collectively([&] {
    if (common.pin) pin_to_share(ranks.node_rank(), ranks.node_size());
  });
  const RaisedGroup raised(ranks, !common.keep_priority);
  Json machine = machine_line(program.app->get_name(), command);
  machine["mpi"] = ranks.library();
  machine["ranks"] = ranks.size();
  machine["ranks_per_node"] = ranks.node_size();
  machine["autogroup"] = raised.state();
  machine["settings"] = settings();
  Report report(ranks, {program.app->get_name(), command, common.json, common.csv, common.progress},
                machine);
  report.text(
      fmt::format("# {} ({})\n# {}\n# MPI: {}; {} rank{}, {} on this node; autogroup: {}\n"
                  "# settings: {}\n",
                  command, commit(), machine_text(machine), ranks.library(), ranks.size(),
                  ranks.size() == 1 ? "" : "s", ranks.node_size(), raised.state(), settings()));
  program.body(ranks, report);
}

int measure_with_mpi(const Program& program, bool threads, const std::string& command) {
  std::optional<Ranks> ranks;
  const std::string name = program.app->get_name();
  try {
    ranks.emplace(program.need, threads);
  } catch (const std::exception& error) {
    if (launcher_rank() == 0) complain(name, error.what());
    return failed;
  }
  try {
    measure(program, *ranks, command);
    return 0;
  } catch (const CollectiveError& error) {
    if (ranks->rank() == 0) complain(name, error.what());
    return failed;
  } catch (const Error& error) {
    if (ranks->size() == 1 || joint(error)) {
      if (ranks->rank() == 0) complain(name, error.what());
      return failed;
    }
    complain(name, fmt::format("rank {}: {}", ranks->rank(), error.what()));
  } catch (const std::exception& error) {
    complain(name, fmt::format("rank {}: {}", ranks->rank(), error.what()));
  }
  // One rank alone failed; the others may wait for it for ever.
  abandon(failed);
}

// How a Budget is set.
void add_time_option(CLI::App& app, CommonOptions& options) {
  app.add_option_function<std::string>(
         "--time",
         [&options](const std::string& text) {
           try {
             options.time_seconds = seconds("--time", text);
           } catch (const Error& error) {
             throw CLI::ValidationError(error.what());
           }
         },
         "What measuring may take, in seconds or minutes (90, 90s, 5m): each case has as many "
         "rounds as fit, and at least 3. Default: 100s, or no limit with --rounds")
      ->type_name("TIME");
}

}  // namespace

void add_common_options(CLI::App& app, CommonOptions& options) {
  app.add_option("--json", options.json,
                 "Write JSON lines to this file: first the machine, then one line a row")
      ->type_name("FILE");
  app.add_option("--csv", options.csv, "Write the rows as CSV to this file")->type_name("FILE");
  app.add_option("--rounds", options.rounds,
                 "Rounds: each measures every column once, in turn; the median is shown")
      ->type_name("N")
      ->check(whole_number(1, 1000000));
  app.add_flag("--quick", options.quick, "Fewer sizes and rounds, for a first look in seconds");
  app.add_flag("--pin", options.pin,
               "Keep each rank on its own share of the cores (most launchers do that already)");
  app.add_flag("--keep-priority", options.keep_priority,
               "Do not raise this session's scheduling group (autogroup) while measuring");
  app.add_option("--progress", options.progress,
                 "Progress line on standard error: auto (on a terminal), always, never")
      ->type_name("WHEN")
      ->check(one_of({"auto", "always", "never"}));
  add_time_option(app, options);
}

int run(const Program& program, int argc, char** argv) {
  program.app->formatter(std::make_shared<PageFormatter>());
  if (const auto status = parse(program, argc, argv)) return *status;
  bool threads = false;
  try {
    threads = program.check();
  } catch (const std::exception& error) {
    return refuse(program, error.what());
  }
  return measure_with_mpi(program, threads, command_line(argc, argv));
}

}  // namespace ropewalk::bench
