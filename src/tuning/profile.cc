#include "tuning/profile.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "ropewalk/error.hpp"
#include "settings/contents.hpp"
#include "settings/names.hpp"
#include "settings/value.hpp"
#include "topology/machine.hpp"
#include "topology/signature.hpp"

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

// Returns what the signature of the machine says of this, "" where it says nothing.
std::string fact(std::string_view name) {
  const auto& facts = topology::signature();
  const auto found = std::ranges::find(facts, name, &topology::MachineFact::name);
  return found == facts.end() ? "" : found->value;
}

// Says whether all CPUs are hardware threads of one core, or share its second cache otherwise. It
// follows from the machine alone, so that all ranks of a node say the same.
bool has_one_second_cache() {
  const std::string cores = fact("machine.cores");
  const std::string caches = fact("machine.caches");
  const std::size_t second = caches.find("L2 ");
  int count = 0;
  int cpus = 0;
  int sharing = 0;
  return second != std::string::npos &&
         std::sscanf(cores.c_str(), "%d, of %d", &count, &cpus) == 2 &&
         std::sscanf(caches.c_str() + second, "L2 %*dK for %d", &sharing) == 1 && sharing == cpus;
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

// Lines that say what values rest on. A machine that was measured is compared by its signature.
constexpr std::string_view of_machine = "machine.";
constexpr std::string_view of_measurement = "measured.";
constexpr std::string_view of_cost = "cost.";

bool is_of_signature(std::string_view name) {
  const auto known = topology::signature_names();
  return std::ranges::find(known, name) != known.end();
}

bool is_note(std::string_view name) {
  return name.starts_with(of_cost) || is_of_signature(name) ||
         (name.starts_with(of_measurement) &&
          tuning::find(name.substr(of_measurement.size())) != nullptr);
}

// Of the names of notes that are known, and the thresholds.
std::string expected_note(std::string_view name) {
  std::string all;
  if (!name.starts_with(of_machine)) return unknown(name.substr(of_measurement.size()));
  for (const std::string_view one : topology::signature_names()) {
    all += (all.empty() ? "" : ", ") + std::string(one);
  }
  return quoted(name) + " is unknown, expected one of " + all + "; leave it out";
}

thread_local const Profile* tried = nullptr;

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
  const std::string_view given = trimmed(line.substr(equals + 1));
  if (is_note(name)) return read_note(name, given, number);
  const Row* row = tuning::find(name);
  if (row == nullptr) {
    const bool note = name.starts_with(of_machine) || name.starts_with(of_measurement);
    refuse(number, note ? expected_note(name) : unknown(name));
  }
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

void Profile::read_note(std::string_view name, std::string_view text, int number) {
  if (text.empty()) {
    refuse(number, std::string(name) + ": found nothing, expected text; write it anew with " +
                       "`ropewalk tune`, or leave the line out");
  }
  const auto [place, is_new] = notes_.try_emplace(std::string(name), number);
  if (is_new) return;
  refuse(number, std::string(name) + " is given on line " + std::to_string(place->second) +
                     " already, expected once; leave one out");
}

void Profile::refuse(int number, const std::string& problem) const {
  refuse_file(file_ + ":" + std::to_string(number), problem);
}

Profile profile() {
  if (tried != nullptr) return *tried;
  const settings::Value value = settings::get(settings::Id::profile);
  if (!value.given) return {};
  std::string file(value.text);
  const settings::Contents& found = settings::contents(file);
  if (!found.error.empty()) {
    refuse_file(file, found.error +
                          ", expected a file that can be read; correct the path, or "
                          "unset it");
  }
  Profile made(std::move(file), found.text);
  if (!topology::refusal_of_profile().empty()) return {};
  return made;
}

Trial::Trial(std::string_view text)
    : profile_("a trial", text), before_(std::exchange(tried, &profile_)) {}

Trial::~Trial() { tried = before_; }

Facts facts_of(int ranks, bool crowded) {
  return {.ranks = ranks,
          .crowded = crowded,
          .cache_bytes = believed_cache_bytes(),
          .one_second_cache = has_one_second_cache()};
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
