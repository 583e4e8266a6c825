// A profile: a file that gives rows of the table (table.hpp) other values, as measured on another
// machine. Lines are `name = value`; `#` begins a comment; sizes take K, M, G and T.
//
// What `ropewalk tune` writes has further lines, which change no value here: `machine.…`, the
// machine that was measured (topology/signature.hpp); `measured.NAME`, what a value rests on; and
// `cost.…`, what `ropewalk explain` predicts times from.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
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
  void read_note(std::string_view name, std::string_view text, int number);
  [[noreturn]] void refuse(int number, const std::string& problem) const;

  std::string file_;
  std::array<std::optional<Line>, rows> lines_;
  std::map<std::string, int, std::less<>> notes_;  // where each stands
};

// That of ROPEWALK_PROFILE; an empty one where it is not set, and where it is of another machine,
// which is so on all ranks that have come together or on none (mpi/settings.hpp). Its contents are
// the same on all of them, and so are its errors: Error(argument).
Profile profile();

// While it lives, profile() of the calling thread is this one, whatever ROPEWALK_PROFILE says: what
// a thread makes meanwhile goes by its values. For tests, and for measuring what other values cost;
// ranks that make something together must have the same. Error(argument) as Profile.
class Trial {
 public:
  explicit Trial(std::string_view text);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

 private:
  Profile profile_;
  const Profile* before_;
};

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
