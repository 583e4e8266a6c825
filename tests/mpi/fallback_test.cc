// Tests the fallbacks on ranks as threads: with and without MPI_*_c, and with counts "above an
// int".
#include "mpi/fallback.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "mpi/fallback_cases.hpp"
#include "mpi/fallback_counts.hpp"
#include "support/thread_mpi.hpp"

namespace {

using namespace ropewalk;

using Case = std::tuple<int, std::size_t, bool>;  // ranks, count, MPI_*_c
class Fallbacks : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { mpi::fallback::int_limit = 5; }
  void TearDown() override { mpi::fallback::int_limit = INT_MAX; }
};

TEST_P(Fallbacks, GiveWhatMpiPromises) {
  const auto [ranks, count, large_counts] = GetParam();
  test::RunOptions options;
  options.large_counts = large_counts;
  test::run_ranks(
      ranks,
      [elements = count](int) {
        test::try_fallbacks(mpi::comm_world(), elements, [](bool holds, const std::string& what) {
          EXPECT_TRUE(holds) << what;
        });
      },
      options);
}
INSTANTIATE_TEST_SUITE_P(Counts, Fallbacks,
                         testing::Combine(testing::Values(1, 2, 5), testing::Values(0, 1, 5, 6, 23),
                                          testing::Bool()));

}  // namespace
