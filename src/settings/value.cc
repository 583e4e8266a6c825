#include "settings/value.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>

#include "ropewalk/error.hpp"
#include "settings/pattern.hpp"

namespace ropewalk::settings {
namespace {

thread_local Lookup replacement = nullptr;

// A complaint repeats so much of the text that was found.
constexpr std::size_t most_found = 100;

// ---- one grammar a kind ------------------------------------------------------------------------

// Returns the word of `words` that the text is.
std::optional<std::string_view> find_word(std::string_view words, std::string_view text) {
  std::optional<std::string_view> found;
  each_word(words, [&](std::string_view word) {
    if (word == text) found = word;
    return !found;
  });
  return found;
}

// Turns other spellings into `off` and `on`; returns the text itself where it is none of them.
std::string_view as_switch(std::string_view text) noexcept {
  for (const std::string_view no : {"0", "no", "false"}) {
    if (text == no) return "off";
  }
  for (const std::string_view yes : {"1", "yes", "true"}) {
    if (text == yes) return "on";
  }
  return text;
}

// Returns 0 where it is no suffix of sizes.
std::int64_t suffix_factor(std::string_view suffix) noexcept {
  constexpr std::string_view letters = "KMGT";
  if (suffix.empty() || suffix == "B") return 1;
  const char letter = suffix.front();
  const auto which = letters.find(letter >= 'a' ? static_cast<char>(letter - 'a' + 'A') : letter);
  const std::string_view rest = suffix.substr(1);
  if (which == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "iB")) return 0;
  return std::int64_t{1} << (10 * (which + 1));
}

std::optional<std::int64_t> parse_number(Kind kind, std::string_view text) noexcept {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || text.front() == '-') return std::nullopt;
  if (kind == Kind::count) return after == end ? std::optional(number) : std::nullopt;
  const auto factor = suffix_factor({after, static_cast<std::size_t>(end - after)});
  if (factor == 0 || number > std::numeric_limits<std::int64_t>::max() / factor) {
    return std::nullopt;
  }
  return number * factor;
}

// Accepts decimal digits with at most one point among them, unless all of them are 0. It is written
// by hand, because what the C++ library has may allocate.
bool is_real(std::string_view text) noexcept {
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = text.substr(std::min(point + 1, text.size()));
  const auto digits = [](std::string_view some, const char* which) {
    return some.find_first_not_of(which) == std::string_view::npos;
  };
  return digits(whole, "0123456789") && digits(part, "0123456789") &&
         !(digits(whole, "0") && digits(part, "0"));
}

bool understand_number(Value& value, std::string_view text) noexcept {
  const Option& option = *value.option;
  const auto number = parse_number(option.kind, text);
  if (!number) return false;
  if (option.kind == Kind::bytes && *number == 0) {
    if (const auto off = find_word(option.words, "off")) return value.word = *off, true;
  }
  if (*number < option.least || *number > option.most) return false;
  value.number = *number;
  return true;
}

// Tells whether the text makes sense; then `value` has its meaning.
bool understand(Value& value, std::string_view text) noexcept {
  const Option& option = *value.option;
  if (const auto word = find_word(option.words, text)) return value.word = *word, true;
  switch (option.kind) {
    case Kind::choice:
      if (const auto word = find_word(option.words, as_switch(text))) {
        return value.word = *word, true;
      }
      return false;
    case Kind::count:
    case Kind::bytes:
      return understand_number(value, text);
    case Kind::real:
      return is_real(text);
    case Kind::nodes:
      return each_number(text, [](int) {});
    case Kind::path:
    case Kind::file:
    case Kind::text:
      return true;
  }
  return false;
}

// ---- what is expected --------------------------------------------------------------------------

void add_numbers(Text& out, const Option& option) noexcept {
  if (!option.unit.empty()) out << option.unit << ", ";
  const bool open = option.most == std::numeric_limits<std::int64_t>::max();
  out << option.least << (open ? " or more" : " to ");
  if (!open) out << option.most;
}

// Says what may stand beside the words.
void add_kind(Text& out, const Option& option) noexcept {
  switch (option.kind) {
    case Kind::choice:
      return;
    case Kind::count:
      return add_numbers(out, option);
    case Kind::bytes:
      out << "bytes, as in 4096, 512M or 2GiB";
      if (option.least > 1) out << ", at least " << option.least;
      return;
    case Kind::real:
      out << option.unit << ", more than 0";
      return;
    case Kind::nodes:
      out << "ranks a node as in 2,1,3, or round:N with N nodes";
      return;
    case Kind::path:
    case Kind::file:
      out << option.unit;
      return;
    case Kind::text:
      out << (option.unit.empty() ? "what the command writes" : option.unit);
      return;
  }
}

}  // namespace

Value parse(const Option& option, const char* text) noexcept {
  Value value{&option, option.fallback, {}, 0, false, false};
  if (text != nullptr && *text != '\0') {
    value.given = true;
    value.text = text;
    if (understand(value, value.text)) return value;
    value.malformed = true;
  }
  if (!option.fallback.empty()) understand(value, option.fallback);
  return value;
}

Value parse(Id id, const char* text) noexcept { return parse(option(id), text); }

Value read(const Option& option) noexcept {
  // Names are literals: the null character is behind them.
  const char* name = option.name.data();
  return parse(option, replacement != nullptr ? replacement(name) : std::getenv(name));
}

Value read(Id id) noexcept { return read(option(id)); }

Value get(Id id) { return require(read(id)); }

const Value& require(const Value& value) {
  if (value.malformed) throw Error(ErrorCode::argument, complaint(value).c_str());
  return value;
}

Text expected(const Option& option) noexcept {
  Text out;
  std::string_view last = option.words;
  const bool alone = option.kind == Kind::choice;
  if (alone) last.remove_prefix(last.rfind(',') + 1);
  bool first = true;
  each_word(option.words, [&](std::string_view word) {
    if (alone && word.data() == last.data()) return out << " or " << word, false;
    out << (first ? "" : ", ") << word;
    first = false;
    return true;
  });
  if (!first && !alone) out << ", or ";
  add_kind(out, option);
  return out;
}

Text complaint(const Value& value) noexcept {
  Text out;
  const Option& option = *value.option;
  out << option.name << ": found \"" << value.text.substr(0, most_found) << "\", expected "
      << expected(option).view() << "; correct it, or unset it";
  if (!option.fallback.empty()) out << " for the default, " << option.fallback;
  return out;
}

Lookup replace_environment(Lookup lookup) noexcept {
  const Lookup before = replacement;
  replacement = lookup;
  return before;
}

}  // namespace ropewalk::settings
