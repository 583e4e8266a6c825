// Lists, sizes and extents out of words; see parse.hpp.
#include "common/parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

[[noreturn]] void refuse(const std::string& option, const std::string& found,
                         const std::string& expected) {
  throw Error(ErrorCode::argument, fmt::format("{}: \"{}\" {}", option, found, expected));
}

bool whole_number(const std::string& word, long long& value) {
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  return error == std::errc() && stop == end;
}

int integer(const std::string& option, const std::string& word, int low, int high) {
  long long value = 0;
  if (!whole_number(word, value) || value < low || value > high) {
    refuse(option, word,
           fmt::format("is not a whole number from {} to {}; write for example {} {},{}", low, high,
                       option, std::max(low, std::min(4, high)), std::max(low, std::min(8, high))));
  }
  return static_cast<int>(value);
}

// Continues the values by the step between the last two, up to `last`, which may lie between two
// steps.
void continue_to(const std::string& option, std::vector<int>& values, int last) {
  if (values.size() < 2 || values.back() <= values[values.size() - 2]) {
    refuse(option, "..", "needs two rising values before it; write for example 4,8,..,32");
  }
  const int step = values.back() - values[values.size() - 2];
  for (long long next = values.back() + static_cast<long long>(step); next <= last; next += step) {
    values.push_back(static_cast<int>(next));
  }
}

}  // namespace

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return parts;
}

std::vector<int> integers(const std::string& option, const std::string& text, int low, int high) {
  std::vector<int> values;
  bool continued = false;
  for (const std::string& word : split(text, ',')) {
    if (word == "..") {
      continued = true;
      continue;
    }
    const int value = integer(option, word, low, high);
    if (continued) {
      continue_to(option, values, value);
    } else {
      values.push_back(value);
    }
    continued = false;
  }
  if (continued) refuse(option, text, "ends in ..; name the last value, for example 4,8,..,32");
  return values;
}

std::size_t bytes(const std::string& option, const std::string& text) {
  const auto wrong = [&] {
    refuse(option, text, "is not a size; write for example 64K, 2M or 1G");
  };
  std::string digits = text;
  int shift = 0;
  if (!digits.empty()) {
    const std::size_t unit = std::string("KMG").find(digits.back());
    if (unit != std::string::npos) {
      shift = 10 * static_cast<int>(unit + 1);
      digits.pop_back();
    }
  }
  long long value = 0;
  if (!whole_number(digits, value) || value < 1) wrong();
  if (value > (std::numeric_limits<long long>::max() >> shift)) wrong();
  return static_cast<std::size_t>(value) << shift;
}

std::vector<std::size_t> byte_list(const std::string& option, const std::string& text) {
  std::vector<std::size_t> sizes;
  for (const std::string& word : split(text, ',')) sizes.push_back(bytes(option, word));
  return sizes;
}

double line_rate_of_environment() {
  const char* text = std::getenv("ROPEWALK_LINE_RATE");
  if (text == nullptr || *text == '\0') return 0;
  char* end = nullptr;
  const double rate = std::strtod(text, &end);
  if (*end == '\0' && rate > 0 && std::isfinite(rate)) return rate;
  throw Error(
      ErrorCode::argument,
      fmt::format("ROPEWALK_LINE_RATE: '{}', expected MB/s that a node sends at most; unset "
                  "it, or write for example 250",
                  text));
}

std::vector<int> extents(const std::string& option, const std::string& text, int dimensions) {
  std::vector<int> values;
  for (const std::string& word : split(text, '.')) {
    long long value = 0;
    if (!whole_number(word, value) || value < 1 || value > std::numeric_limits<int>::max()) {
      refuse(option, text, "holds an extent that is not 1 or more; write for example 1.1.1.2");
    }
    values.push_back(static_cast<int>(value));
  }
  if (dimensions > 0 && values.size() != static_cast<std::size_t>(dimensions)) {
    refuse(option, text,
           fmt::format("has {} extents, and {} are expected; write for example 1.1.1.2",
                       values.size(), dimensions));
  }
  return values;
}

std::vector<std::string> words(const std::string& option, const std::string& text,
                               const std::vector<std::string>& known) {
  std::vector<std::string> found;
  for (const std::string& word : split(text, ',')) {
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      refuse(option, word,
             fmt::format("is not known; name one or more of {}", fmt::join(known, ",")));
    }
    if (std::find(found.begin(), found.end(), word) == found.end()) found.push_back(word);
  }
  return found;
}

double seconds(const std::string& option, const std::string& text) {
  constexpr double seconds_a_minute = 60;
  constexpr double most = 86400;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const std::string unit(stop, end);
  if (unit == "m") value *= seconds_a_minute;
  if (error != std::errc() || (!unit.empty() && unit != "s" && unit != "m") ||
      !std::isfinite(value) || value <= 0 || value > most) {
    refuse(option, text,
           fmt::format("is no time of up to a day in seconds or minutes; write for example {} 90s "
                       "or {} 5m",
                       option, option));
  }
  return value;
}

std::string dotted(const std::vector<int>& values) {
  return fmt::format("{}", fmt::join(values, "."));
}

std::string size_text(std::size_t size) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB"};
  double value = static_cast<double>(size);
  int unit = 0;
  while (value >= 1024 && unit < 3) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.3g} {}", value, units[unit]);
}

}  // namespace ropewalk::bench
