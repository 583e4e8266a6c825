#include "memory/options.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ropewalk::memory {
namespace {

class Variable {
 public:
  Variable(const char* variable, const char* value) : name_(variable) {
    if (const char* old = std::getenv(variable)) before_ = old;
    setenv(variable, value, 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

template <class Call>
std::string argument_error(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::argument);
    return error.what();
  }
  return "no error";
}

TEST(Names, OfSourcesAndPoliciesGoThereAndBack) {
  for (const char* text : {"hugetlb-1g-memfd", "hugetlb-memfd", "shmem-huge", "shmem-small",
                           "anonymous-hugetlb", "hugetlbfs-file", "memalign", "thp"}) {
    EXPECT_STREQ(name(page_source(text)), text);
  }
  for (const char* text : {"ddr", "hbm", "cxl"}) EXPECT_STREQ(name(memory_kind(text)), text);
  for (const char* text : {"require", "prefer", "never"}) {
    EXPECT_STREQ(name(page_policy(text)), text);
  }
}

TEST(Names, AnUnknownOneListsTheKnown) {
  const std::string text = argument_error([] { page_source("hugetlb"); });
  EXPECT_NE(text.find("\"hugetlb\""), std::string::npos);
  EXPECT_NE(text.find("shmem-huge"), std::string::npos);
  EXPECT_NE(argument_error([] { page_policy(""); }).find("prefer"), std::string::npos);
}

TEST(Environment, IsReadAndMalformedValuesNameTheVariable) {
  {
    const Variable pages("ROPEWALK_PAGES", "never");
    const Variable bytes("ROPEWALK_ARENA_BYTES", "64M");
    const Variable fork("ROPEWALK_FORK", "refuse");
    EXPECT_EQ(environment_options().pages, PagePolicy::never);
    EXPECT_EQ(environment_arena_bytes(), 64u << 20);
    EXPECT_EQ(environment_fork_policy(), ForkPolicy::refuse);
    EXPECT_EQ(Arena().reserved_bytes(), 64u << 20);
  }
  const Variable pages("ROPEWALK_PAGES", "Never");
  const Variable bytes("ROPEWALK_ARENA_BYTES", "much");
  const Variable fork("ROPEWALK_FORK", "maybe");
  EXPECT_EQ(argument_error([] { environment_options(); }).find("ROPEWALK_PAGES: "), 0u);
  EXPECT_EQ(argument_error([] { Arena(); }).find("ROPEWALK_ARENA_BYTES: "), 0u);
  EXPECT_EQ(argument_error([] { environment_fork_policy(); }).find("ROPEWALK_FORK: "), 0u);
}

TEST(Environment, AnArenaOfNothingIsRefused) {
  const Variable bytes("ROPEWALK_ARENA_BYTES", "0");
  EXPECT_EQ(argument_error([] { Arena(); }).find("ROPEWALK_ARENA_BYTES: found \"0\""), 0u);
}

}  // namespace
}  // namespace ropewalk::memory
