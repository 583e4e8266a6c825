// Tests of the benchmarks' options share these functions. They parse words as the command line
// does, and return the text of an error.
#pragma once

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "ropewalk/error.hpp"

namespace ropewalk::bench {

// Returns the options that the words give to the program.
template <class Options>
Options parse_words(const char* program, std::vector<std::string> words) {
  Options options;
  CLI::App app("test", program);
  describe(app, options);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the end.
  app.parse(words);
  check(options);
  return options;
}

// Returns the text of the Error(argument) that the action throws, or "accepted" where it throws
// none.
template <class Action>
std::string refusal_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::argument);
    return error.what();
  }
  return "accepted";
}

}  // namespace ropewalk::bench
