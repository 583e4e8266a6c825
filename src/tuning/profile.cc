#include "tuning/profile.hpp"

#include <algorithm>
#include <utility>

#include "ropewalk/error.hpp"
#include "settings/contents.hpp"
#include "settings/names.hpp"
#include "settings/value.hpp"
#include "topology/machine.hpp"

namespace ropewalk::tuning {
namespace {

constexpr std::string_view blanks = " \t\r";
constexpr std::size_t most_found = 60;  // letters of a line that are repeated in an error

// What virtual machines are told of the last-level cache may be the host's: no more than 64 MiB are
// believed, and no less than 16. Read once, since it is a walk over sysfs.
std::size_t believed_cache_bytes() {
  static const std::size_t cache =
      topology::read_machine().last_level_cache_bytes(topology::usable_cpus().cpus.front());
  return std::clamp<std::size_t>(cache, std::size_t{16} << 20, std::size_t{64} << 20);
}

[[noreturn]] void refuse_file(const std::string& file, const std::string& problem) {
  throw Error(ErrorCode::argument, "ROPEWALK_PROFILE: " + file + ": " + problem);
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string quoted(std::string_view text) {
  return "\"" + std::string(text.substr(0, most_found)) + "\"";
}

// A name that was begun, else the one that is spelled most alike.
std::string_view nearest(std::string_view name) {
  settings::Nearest nearest(name);
  for (const Row& one : table()) {
    if (one.name.starts_with(name)) return one.name;
    nearest.offer(one.name);
  }
  return nearest.found();
}

std::string unknown(std::string_view name) {
  const std::string_view meant = nearest(name);
  return quoted(name) + " is unknown, expected a name that `ropewalk explain thresholds` lists; " +
         (meant.empty() ? "leave it out" : "did you mean " + std::string(meant) + "?");
}

// By the grammar that settings have; nothing where it is none, or beyond the bounds of the row.
std::optional<std::size_t> number_of(const Row& row, std::string_view text) {
  settings::Option option = settings::option(settings::Id::profile);
  option.kind = row.unit == Unit::bytes ? settings::Kind::bytes : settings::Kind::count;
  option.least = static_cast<std::int64_t>(row.least);
  option.most = static_cast<std::int64_t>(row.most);
  const std::string terminated(text);
  const settings::Value value = settings::parse(option, terminated.c_str());
  if (value.malformed || !value.given) return std::nullopt;
  return static_cast<std::size_t>(value.number);
}

std::string expected(const Row& row) {
  return std::string(row.unit == Unit::bytes ? "bytes, " : "a number, ") +
         value_text(row, row.least) + " to " + value_text(row, row.most);
}

}  // namespace

Profile::Profile(std::string file, std::string_view text) : file_(std::move(file)) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    read(trimmed(line.substr(0, line.find('#'))), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void Profile::read(std::string_view line, int number) {
  if (line.empty()) return;
  const std::size_t equals = line.find('=');
  const std::string_view name = trimmed(line.substr(0, equals));
  if (equals == std::string_view::npos || name.empty()) {
    refuse(number, "found " + quoted(line) + ", expected NAME = VALUE; correct it");
  }
  const Row* row = tuning::find(name);
  if (row == nullptr) refuse(number, unknown(name));
  const std::string_view given = trimmed(line.substr(equals + 1));
  const std::optional<std::size_t> value = number_of(*row, given);
  if (!value) {
    refuse(number, std::string(name) + ": found " + quoted(given) + ", expected " + expected(*row) +
                       "; correct it");
  }
  std::optional<Line>& place = lines_[static_cast<std::size_t>(row->id)];
  if (place) {
    refuse(number, std::string(name) + " is given on line " + std::to_string(place->number) +
                       " already, expected once; leave one out");
  }
  place = {*value, number};
}

void Profile::refuse(int number, const std::string& problem) const {
  refuse_file(file_ + ":" + std::to_string(number), problem);
}

Profile profile() {
  const settings::Value value = settings::get(settings::Id::profile);
  if (!value.given) return {};
  std::string file(value.text);
  const settings::Contents& found = settings::contents(file);
  if (!found.error.empty()) {
    refuse_file(file, found.error +
                          ", expected a file that can be read; correct the path, or "
                          "unset it");
  }
  return {std::move(file), found.text};
}

Facts facts_of(int ranks, bool crowded) {
  return {.ranks = ranks, .crowded = crowded, .cache_bytes = believed_cache_bytes()};
}

Values::Values(const Facts& facts, const Profile& profile) {
  for (const Row& one : table()) {
    const std::optional<Profile::Line>& line = profile.line(one.id);
    values_[static_cast<std::size_t>(one.id)] = line ? line->value : default_value(one, facts);
  }
}

std::string size_text(std::size_t bytes) {
  constexpr std::string_view letters = "KMGT";
  std::size_t power = 0;
  while (bytes > 0 && bytes % 1024 == 0 && power < letters.size()) {
    bytes /= 1024;
    ++power;
  }
  return std::to_string(bytes) + (power > 0 ? std::string(1, letters[power - 1]) : "");
}

std::string value_text(const Row& row, std::size_t value) {
  return row.unit == Unit::bytes ? size_text(value) : std::to_string(value);
}

}  // namespace ropewalk::tuning
