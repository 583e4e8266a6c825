// A profile: a file that gives rows of the table (table.hpp) other values, as measured on another
// machine. Lines are `name = value`; `#` begins a comment; sizes take K, M, G and T.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "tuning/table.hpp"

namespace ropewalk::tuning {

class Profile {
 public:
  struct Line {
    std::size_t value;
    int number;  // in the file, from 1
  };

  Profile() = default;  // gives nothing
  // Throws Error(argument) that names file and line, what was found there and what was expected.
  Profile(std::string file, std::string_view text);

  // Returns the line that gives a row its value, where there is one.
  const std::optional<Line>& line(Id id) const noexcept {
    return lines_[static_cast<std::size_t>(id)];
  }
  const std::string& file() const noexcept { return file_; }  // empty: none

 private:
  void read(std::string_view line, int number);
  [[noreturn]] void refuse(int number, const std::string& problem) const;

  std::string file_;
  std::array<std::optional<Line>, rows> lines_;
};

// That of ROPEWALK_PROFILE, an empty one where it is not set. Its contents are the same on all
// ranks that have come together (settings/shared.hpp), and so are its errors: Error(argument).
Profile profile();

// Returns the facts of the node that this process is on. The first call reads the machine's caches.
Facts facts_of(int ranks, bool crowded);

// What ropewalk goes by: of each row the profile's value, else the default under these facts.
class Values {
 public:
  Values(const Facts& facts, const Profile& profile);
  std::size_t operator[](Id id) const noexcept { return values_[static_cast<std::size_t>(id)]; }

 private:
  std::array<std::size_t, rows> values_;
};

// Writes a size as people do: 64K, 1M, 5184.
std::string size_text(std::size_t bytes);
// Writes the value of a row: a size, or a plain number.
std::string value_text(const Row&, std::size_t value);

}  // namespace ropewalk::tuning
