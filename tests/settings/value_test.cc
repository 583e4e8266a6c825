// Tests the grammar of each kind of setting: which texts are accepted, which are refused, and with
// what error.
#include "settings/value.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>

#include "ropewalk/error.hpp"

namespace ropewalk::settings {
namespace {

struct Case {
  Id id;
  const char* text;
  std::string_view word;
  std::int64_t number = 0;
};

void expect_understood(const Case& good) {
  const Value value = parse(good.id, good.text);
  EXPECT_FALSE(value.malformed) << complaint(value).c_str();
  EXPECT_EQ(value.word, good.word) << good.text;
  EXPECT_EQ(value.number, good.number) << good.text;
}

constexpr std::int64_t kib = 1024;
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

TEST(Grammar, OfSizes) {
  for (const Case& good : {Case{Id::arena_bytes, "4096", "", 4096},
                           {Id::arena_bytes, "4096B", "", 4096},
                           {Id::arena_bytes, "3k", "", 3 * kib},
                           {Id::arena_bytes, "512M", "", 512 * kib * kib},
                           {Id::arena_bytes, "512mB", "", 512 * kib * kib},
                           {Id::arena_bytes, "2GiB", "", 2 * kib * kib * kib},
                           {Id::arena_bytes, "1TB", "", kib * kib * kib * kib},
                           {Id::arena_bytes, "9223372036854775807", "", largest},
                           {Id::arena_bytes, "auto", "auto"},
                           {Id::piece_bytes, "1M", "", kib * kib},
                           {Id::piece_bytes, "1048576", "", kib * kib},
                           {Id::piece_bytes, "0", "off"},
                           {Id::piece_bytes, "off", "off"},
                           {Id::malloc_threshold, "0K", "off"},
                           {Id::malloc_threshold, "1", "", 1}}) {
    expect_understood(good);
  }
  for (const char* bad :
       {"0", "M", "-1", "+1", "1.5G", "12 M", " 12", "12X", "12MM", "12Mi", "12k!", "8388608T",
        "9223372036854775808", "99999999999999999999999", "Auto"}) {
    EXPECT_TRUE(parse(Id::arena_bytes, bad).malformed) << bad;
  }
  for (const char* bad : {"1", "4095", "3K", "auto"}) {
    EXPECT_TRUE(parse(Id::piece_bytes, bad).malformed) << bad;
  }
}

TEST(Grammar, OfCounts) {
  for (const Case& good : {Case{Id::lanes, "1", "", 1},
                           {Id::lanes, "64", "", 64},
                           {Id::lanes, "auto", "auto"},
                           {Id::timeout, "86400", "", 86400},
                           {Id::timeout, "off", "off"},
                           {Id::domains, "007", "", 7},
                           {Id::registrations, "32768", "", 32768}}) {
    expect_understood(good);
  }
  for (const char* bad : {"0", "-1", "65", "4K", "4x", "x4", "4 ", "1e1", "0x4", "off", "AUTO",
                          "99999999999999999999"}) {
    EXPECT_TRUE(parse(Id::lanes, bad).malformed) << bad;
  }
  for (const char* bad : {"0", "1", "86401", "no"}) {
    EXPECT_EQ(parse(Id::timeout, bad).malformed, std::string_view(bad) != "1") << bad;
  }
}

TEST(Grammar, OfChoicesAndSwitches) {
  for (const Case& good : {Case{Id::fork, "refuse", "refuse"},
                           {Id::allreduce, "ring", "ring"},
                           {Id::disable, "1", "on"},
                           {Id::disable, "yes", "on"},
                           {Id::disable, "true", "on"},
                           {Id::disable, "0", "off"},
                           {Id::disable, "no", "off"},
                           {Id::disable, "false", "off"},
                           {Id::stats, "compare", "compare"},
                           {Id::nonblocking, "1", "on"},
                           {Id::device_buffers, "0", "off"},
                           {Id::xpmem, "0", "off"}}) {
    expect_understood(good);
  }
  for (const Case& bad : {Case{Id::fork, "Copy", ""},
                          {Id::fork, "0", ""},
                          {Id::fork, "copy,refuse", ""},
                          {Id::allreduce, "rin", ""},
                          {Id::disable, "2", ""},
                          {Id::xpmem, "on", ""},
                          {Id::isa, "sse9", ""}}) {
    EXPECT_TRUE(parse(bad.id, bad.text).malformed) << bad.text;
  }
}

TEST(Grammar, OfNodesRatesAndPaths) {
  for (const char* good : {"auto", "2", "2,1,3", "round:3"}) {
    EXPECT_FALSE(parse(Id::nodes, good).malformed) << good;
  }
  for (const char* bad : {"0", "2,", ",2", "2,0", "2;1", "round:", "round:0", "round:2,1", "two"}) {
    EXPECT_TRUE(parse(Id::nodes, bad).malformed) << bad;
  }
  for (const char* good : {"1", "0.5", "12500.25", ".5"}) {
    EXPECT_FALSE(parse(Id::line_rate, good).malformed) << good;
  }
  for (const char* bad : {"0", "0.0", "-1", "fast", "1e3", "1.2.3", ".", "nan"}) {
    EXPECT_TRUE(parse(Id::line_rate, bad).malformed) << bad;
  }
  EXPECT_EQ(parse(Id::mpi_library, "/opt/libmpi.so").text, "/opt/libmpi.so");
  EXPECT_FALSE(parse(Id::mpi_library, "/opt/libmpi.so").malformed);
}

TEST(Grammar, NothingIsTheDefault) {
  for (const Option& option : table()) {
    for (const char* nothing : {static_cast<const char*>(nullptr), ""}) {
      const Value value = parse(option, nothing);
      EXPECT_FALSE(value.given || value.malformed) << option.name;
      EXPECT_EQ(value.text, option.fallback);
    }
  }
  EXPECT_EQ(parse(Id::timeout, nullptr).number, 60);
  EXPECT_TRUE(parse(Id::lanes, nullptr).is("auto"));
  EXPECT_EQ(parse(Id::malloc_threshold, nullptr).number, 128 * kib);
}

TEST(Grammar, WhatIsMalformedHasTheDefaultsValue) {
  const Value value = parse(Id::malloc_threshold, "12 apples");
  EXPECT_TRUE(value.given && value.malformed);
  EXPECT_EQ(value.number, 128 * kib);
}

TEST(Complaint, SaysWhatWasFoundWhatIsExpectedAndWhatToDo) {
  EXPECT_STREQ(
      complaint(parse(Id::timeout, "soon")).c_str(),
      "ROPEWALK_TIMEOUT: found \"soon\", expected off, or seconds, 1 to 86400; correct it, "
      "or unset it for the default, 60");
  EXPECT_STREQ(complaint(parse(Id::fork, "maybe")).c_str(),
               "ROPEWALK_FORK: found \"maybe\", expected copy or refuse; correct it, or unset it "
               "for the default, copy");
  EXPECT_STREQ(expected(option(Id::piece_bytes)).c_str(),
               "off, or bytes, as in 4096, 512M or 2GiB, at least 4096");
  const std::string endless(10000, 'x');
  const std::string text = complaint(parse(Id::lanes, endless.c_str())).c_str();
  EXPECT_LT(text.size(), 500U);
  EXPECT_NE(text.find("expected auto, or 1 to 64; correct it"), std::string::npos) << text;
}

TEST(Reading, SeesTheEnvironmentAsItIsNow) {
  unsetenv("ROPEWALK_FORK");
  EXPECT_TRUE(get(Id::fork).is("copy"));
  setenv("ROPEWALK_FORK", "refuse", 1);
  EXPECT_TRUE(get(Id::fork).is("refuse"));
  setenv("ROPEWALK_FORK", "perhaps", 1);
  EXPECT_TRUE(read(Id::fork).is("copy"));  // nothing is thrown
  try {
    get(Id::fork);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::argument);
    EXPECT_EQ(std::string(error.what()).find("ROPEWALK_FORK: found \"perhaps\""), 0U);
  }
  unsetenv("ROPEWALK_FORK");
}

}  // namespace
}  // namespace ropewalk::settings
