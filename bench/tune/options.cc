#include "tune/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/parse.hpp"

namespace ropewalk::bench {
namespace {

const char* const about =
    "Started by `ropewalk tune`, which makes a profile of the rows. Each threshold is searched\n"
    "among the ways that it decides between, which are measured in turn; the default stays unless\n"
    "another value saves more than 3 % and more than the noise.\n"
    "Groups:\n"
    "  copies       a flag, copies by size and kind of stores, the kernel's by one rank or all\n"
    "  channel      messages between two ranks, by each mechanism\n"
    "  collectives  the collectives of a node, by each path\n"
    "and over several nodes, with as many ranks on each:\n"
    "  wire         messages from node to node, one way, both ways, and by all ranks\n"
    "  lanes        messages that are split over several lanes\n"
    "  nodes        the collectives over nodes, by each algorithm\n"
    "Example:\n"
    "  ropewalk bench tune --only channel --json tune.json";

}  // namespace

bool TuneOptions::asks(const std::string& group) const {
  return std::ranges::count(groups, group) > 0;
}

void describe(CLI::App& app, TuneOptions& options) {
  app.add_option("--only", options.only,
                 "What to measure: copies, channel, collectives; wire, lanes, nodes")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_flag("--between", options.between,
               "Measure costs alone, at sizes between those of a profile, to check it");
  add_common_options(app, options.common);
  app.footer(about);
}

bool check(TuneOptions& options) {
  options.groups =
      words("--only", options.only, {"copies", "channel", "collectives", "wire", "lanes", "nodes"});
  return options.asks("lanes") && !options.between;
}

}  // namespace ropewalk::bench
