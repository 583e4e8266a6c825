// Words of the command line made into values; each refusal names the option and a value that works.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ropewalk::bench {

// All throw Error(argument, "<option>: found, expected; remedy").

// "4,8,16" or with the step of the first two, "4,8,..,32". Every value in [low, high].
std::vector<int> integers(const std::string& option, const std::string& text, int low, int high);
// "64K", "2M", "1G" (powers of 1024) or plain bytes, and lists of them; at least 1 byte each.
std::size_t bytes(const std::string& option, const std::string& text);
std::vector<std::size_t> byte_list(const std::string& option, const std::string& text);
// MB/s that a node sends at most, of ROPEWALK_LINE_RATE, which `ropewalk cluster` sets; 0 without.
double line_rate_of_environment();
// "1.1.1.2": exactly `dimensions` extents of at least 1, or any number of them where it is 0.
std::vector<int> extents(const std::string& option, const std::string& text, int dimensions);
// "a,b,c": words out of `known`, without repeats.
std::vector<std::string> words(const std::string& option, const std::string& text,
                               const std::vector<std::string>& known);

// "90" and "90s", "1.5m": seconds, more than 0 and at most a day.
double seconds(const std::string& option, const std::string& text);

std::string dotted(const std::vector<int>& extents);  // {1,1,1,2}: "1.1.1.2"
std::string size_text(std::size_t bytes);  // 2097152: "2 MiB", 49152: "48 KiB", 100: "100 B"
std::vector<std::string> split(const std::string& text, char separator);

}  // namespace ropewalk::bench
