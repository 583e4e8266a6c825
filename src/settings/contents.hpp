// What is in the file that a setting names. A process reads a file once and keeps it: what ranks
// have compared (shared.hpp) is what they go by, whatever becomes of the file meanwhile.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ropewalk::settings {

struct Contents {
  std::string text;
  std::string error;  // why it cannot be read, in words; empty where it can
};

constexpr std::size_t largest_file = std::size_t{1} << 20;  // bytes; a profile has a few thousand

// Reads at the first call for this path, and remembers failures as well. Allocates; from any
// thread. The reference stays for the life of the process.
const Contents& contents(std::string_view path);

}  // namespace ropewalk::settings
