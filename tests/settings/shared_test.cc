// Tests settings that must be the same on all ranks: the judgement, and makings by ranks as threads
// whose environments differ.
#include "settings/shared.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "ropewalk/collectives.hpp"
#include "ropewalk/endpoint.hpp"
#include "ropewalk/error.hpp"
#include "settings/value.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::settings {
namespace {

thread_local std::string_view name_here;
thread_local const char* text_here = nullptr;

const char* look_up(const char* name) { return name_here == name ? text_here : nullptr; }

// Gives this thread an environment of one variable and no other.
class Only {
 public:
  Only(std::string_view name, const char* text) : before_(replace_environment(&look_up)) {
    name_here = name;
    text_here = text;
  }
  Only(const Only&) = delete;
  Only& operator=(const Only&) = delete;
  ~Only() { replace_environment(before_); }

 private:
  Lookup before_;
};

AllTold told_with(std::string_view name, const char* text) {
  const Only only(name, text);
  return tell();
}

std::uint64_t print_of(std::string_view name, const char* text) {
  const Only only(name, text);
  return fingerprint();
}

template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::argument);
    return error.what();
  }
  return "";
}

TEST(Fingerprint, IsOfWhatValuesMeanAndOfSharedSettingsAlone) {
  const std::uint64_t none = print_of("", nullptr);
  EXPECT_EQ(print_of("ROPEWALK_ALLREDUCE", "auto"), none);
  EXPECT_EQ(print_of("ROPEWALK_ALLREDUCE", ""), none);
  EXPECT_EQ(print_of("ROPEWALK_TIMEOUT", "060"), none);
  EXPECT_EQ(print_of("ROPEWALK_DISABLE", "0"), none);
  EXPECT_EQ(print_of("ROPEWALK_STATS", "1"), print_of("ROPEWALK_STATS", "on"));
  EXPECT_EQ(print_of("ROPEWALK_ARENA_BYTES", "1G"), none);  // each rank may have its own
  EXPECT_NE(print_of("ROPEWALK_ALLREDUCE", "ring"), none);
  EXPECT_NE(print_of("ROPEWALK_ALLREDUCE", "rings"), none);
  EXPECT_NE(print_of("ROPEWALK_NODES", "2"), print_of("ROPEWALK_NODES", "2,1"));
  EXPECT_NE(print_of("ROPEWALK_LANES", "2"), print_of("ROPEWALK_DOMAINS", "2"));
}

TEST(RequireSame, NamesTheVariableBothValuesAndBothRanks) {
  const AllTold plain = told_with("", nullptr);
  const std::vector<AllTold> same(3, plain);
  EXPECT_NO_THROW(require_same(same));
  std::vector<AllTold> ranks = same;
  ranks[2] = told_with("ROPEWALK_ALLREDUCE", "ring");
  EXPECT_EQ(
      error_of([&] { require_same(ranks); }),
      "ROPEWALK_ALLREDUCE: found \"ring\" on rank 2 and \"auto\" on rank 0, expected the same "
      "on all ranks; set it for all of them, as in `ropewalk run --env "
      "ROPEWALK_ALLREDUCE=ring`");
  ranks = same;
  ranks[0] = told_with("ROPEWALK_TIMEOUT", "soon");
  const std::string text = error_of([&] { require_same(ranks); });
  EXPECT_EQ(text.find("ROPEWALK_TIMEOUT: found \"60\" on rank 1 and \"soon\" on rank 0"), 0U)
      << text;
}

// The error of each rank's making; ranks have the variable as `text_of(rank)`.
template <class Make>
std::vector<std::string> errors_of(int ranks, std::string_view name, Make make) {
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  test::run_ranks(ranks, [&](int rank) {
    const Only only(name, rank == 1 ? "ring" : nullptr);
    errors[static_cast<std::size_t>(rank)] = error_of(make);
  });
  return errors;
}

void expect_joint(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) {
    EXPECT_EQ(error, errors[0]);
    EXPECT_EQ(error.find("ROPEWALK_ALLREDUCE: found \"ring\" on rank 1 and \"auto\" on rank 0"), 0U)
        << error;
  }
}

TEST(Makings, OfACommunicatorRefuseOnAllRanksWhatOneHasOtherwise) {
  expect_joint(
      errors_of(3, "ROPEWALK_ALLREDUCE", [] { const Collectives made(Communicator::world()); }));
}

TEST(Makings, OfAnEndpointSetDoTheSame) {
  expect_joint(errors_of(2, "ROPEWALK_ALLREDUCE", [] {
    const EndpointSet made(Communicator::world(), EndpointOptions{.lanes = 1, .threads = false});
  }));
}

TEST(Makings, GoOnWhereRanksSpellTheSameOtherwise) {
  test::run_ranks(2, [](int rank) {
    const Only only("ROPEWALK_TIMEOUT", rank == 1 ? "60" : nullptr);
    EXPECT_TRUE(Collectives(Communicator::world()).direct());
  });
  test::run_ranks(2, [](int rank) {
    const Only only("ROPEWALK_PIECE_BYTES", rank == 1 ? "1M" : nullptr);
    EXPECT_TRUE(Collectives(Communicator::world()).direct());
  });
}

}  // namespace
}  // namespace ropewalk::settings
