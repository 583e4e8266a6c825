// Checks of single words of the command line. Each refusal says what was found, what was expected
// and what to write; CLI11 puts the option's name before it.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>
#include <vector>

namespace ropewalk::bench {

inline CLI::Validator whole_number(long long low, long long high) {
  const auto check = [=](const std::string& word) -> std::string {
    long long value = 0;
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, value);
    if (error == std::errc() && stop == end && low <= value && value <= high) return "";
    return fmt::format(
        "\"{}\", expected a whole number from {} to {}; give one of these, or leave "
        "the option out",
        word, low, high);
  };
  return {check, ""};
}

inline CLI::Validator one_of(std::vector<std::string> words) {
  const auto check = [=](const std::string& word) -> std::string {
    for (const std::string& known : words) {
      if (word == known) return "";
    }
    return fmt::format("\"{}\", expected {}; give one of these, or leave the option out", word,
                       fmt::join(words, ", "));
  };
  return {check, ""};
}

}  // namespace ropewalk::bench
