// The value of a setting: the environment's, by the grammar of its kind, else the default.
#pragma once

#include <cstdint>
#include <string_view>

#include "settings/table.hpp"
#include "settings/text.hpp"

namespace ropewalk::settings {

struct Value {
  const Option* option;
  std::string_view text;  // as it was found; else the default's
  std::string_view word;  // the word of the option that it is; empty where it is none
  std::int64_t number;    // else, of the kinds count and bytes
  bool given;             // the environment has it: set, and not empty
  bool malformed;  // what it was found to be makes no sense: word and number are the default's

  bool is(std::string_view which) const noexcept { return word == which; }
};

// What a text means; null and empty mean the default. In a choice, 0, no and false are `off`, and
// 1, yes and true are `on`, where there are such words.
Value parse(const Option&, const char* text) noexcept;
Value parse(Id, const char* text) noexcept;

// Reads the value that this process has now, from the environment, which takes some 100 ns. No
// thread may change the environment meanwhile (getenv(3)).
Value read(Id) noexcept;
Value read(const Option&) noexcept;

// Does the same as read(), and throws Error(argument) with complaint() where the value is
// malformed.
Value get(Id);
// Returns the value itself, unless it is malformed: then it throws Error(argument) with
// complaint().
const Value& require(const Value&);

// Returns "NAME: found …, expected …; what to do", of a malformed value.
Text complaint(const Value&) noexcept;

// Says what an option takes, in words: "auto, or 1 to 64".
Text expected(const Option&) noexcept;

// For tests of ranks that are threads, and so have one environment: where set, the calling thread
// reads through it. Returns the one before; null is the environment of the process.
using Lookup = const char* (*)(const char* name);
Lookup replace_environment(Lookup) noexcept;

}  // namespace ropewalk::settings
