// Benchmark programs share this main function. It expects of their options a describe(), a check()
// and a member `common`.
#pragma once

#include <CLI/CLI.hpp>
#include <type_traits>

#include "common/program.hpp"

namespace ropewalk::bench {

// Parses the command line, calls body(options, ranks, report), and returns the exit status. A
// check() that returns nothing means that no comm threads are used.
template <class Options, class Body>
int run_main(const char* title, const char* name, Need need, Body body, int argc, char** argv) {
  Options options;
  CLI::App app(title, name);
  describe(app, options);
  const auto checked = [&] {
    if constexpr (std::is_void_v<decltype(check(options))>) {
      check(options);
      return false;
    } else {
      return check(options);
    }
  };
  const Program program{&app, &options.common, need, checked,
                        [&](const Ranks& ranks, Report& report) { body(options, ranks, report); }};
  return run(program, argc, argv);
}

}  // namespace ropewalk::bench
