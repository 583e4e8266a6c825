// Tests plans through the C interface.
#include <gtest/gtest.h>

#include <string>

#include "ropewalk/ropewalk.h"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

TEST(PlanCApi, ReducesAndReports) {
  run_ranks(2, [](int rank) {
    rw_mpi_comm world = 0;
    ASSERT_EQ(rw_comm_world(&world), RW_SUCCESS);
    double apart[3] = {1.0 * rank, 2, 3};
    double result[3] = {};
    const rw_plan_tensor tensors[] = {{3, RW_FLOAT64, apart, result},
                                      {5, RW_FLOAT64, nullptr, nullptr}};
    const rw_plan_options options = {RW_SUM, 1, 0, 0, 0, 0};
    rw_plan* plan = nullptr;
    ASSERT_EQ(rw_plan_create(world, 2, tensors, &options, &plan), RW_SUCCESS) << rw_last_error();
    int buckets = 0;
    EXPECT_EQ(rw_plan_buckets(plan, &buckets), RW_SUCCESS);
    EXPECT_EQ(buckets, 1);
    void* memory = nullptr;
    EXPECT_EQ(rw_plan_data(plan, 1, &memory), RW_SUCCESS);
    static_cast<double*>(memory)[4] = rank + 1;
    EXPECT_EQ(rw_plan_reduce(plan), RW_SUCCESS) << rw_last_error();
    EXPECT_EQ(result[0], 0.5);
    EXPECT_EQ(static_cast<double*>(memory)[4], 1.5);

    EXPECT_EQ(rw_plan_ready(plan, 1), RW_SUCCESS);
    EXPECT_EQ(rw_plan_ready(plan, 0), RW_SUCCESS);
    int bucket = -1;
    EXPECT_EQ(rw_plan_bucket_of(plan, 1, &bucket), RW_SUCCESS);
    int done = 0;
    while (done == 0) ASSERT_EQ(rw_plan_test(plan, bucket, &done), RW_SUCCESS);
    EXPECT_EQ(rw_plan_wait(plan, -1), RW_SUCCESS);
    EXPECT_EQ(rw_plan_bind(plan, 0, nullptr, apart), RW_SUCCESS);
    EXPECT_EQ(rw_plan_start_bucket(plan, 0), RW_SUCCESS);
    EXPECT_EQ(rw_plan_wait(plan, 0), RW_SUCCESS);
    EXPECT_EQ(apart[0], 0.5);
    EXPECT_EQ(rw_plan_start(plan), RW_SUCCESS);
    EXPECT_EQ(rw_plan_wait(plan, -1), RW_SUCCESS);

    EXPECT_EQ(rw_plan_start_bucket(plan, 3), RW_ERROR_ARGUMENT);
    EXPECT_EQ(std::string(rw_last_error()).substr(0, 10), "bucket: 3,");
    EXPECT_EQ(rw_plan_start(nullptr), RW_ERROR_ARGUMENT);
    EXPECT_EQ(rw_plan_free(plan), RW_SUCCESS);
    EXPECT_EQ(rw_plan_free(nullptr), RW_SUCCESS);
  });
}

TEST(PlanCApi, ANullOnOneRankIsAnErrorOnAll) {
  run_ranks(2, [](int rank) {
    rw_mpi_comm world = 0;
    ASSERT_EQ(rw_comm_world(&world), RW_SUCCESS);
    const rw_plan_tensor tensor = {3, RW_FLOAT64, nullptr, nullptr};
    rw_plan* plan = nullptr;
    EXPECT_EQ(rw_plan_create(world, 1, rank == 0 ? nullptr : &tensor, nullptr, &plan),
              RW_ERROR_ARGUMENT);
    EXPECT_EQ(plan, nullptr);
    const rw_plan_tensor foreign = {3, 17, nullptr, nullptr};
    EXPECT_EQ(rw_plan_create(world, 1, &foreign, nullptr, &plan), RW_ERROR_ARGUMENT);
    EXPECT_NE(std::string(rw_last_error()).find("tensor[0].type: 17"), std::string::npos);
  });
}

}  // namespace
}  // namespace ropewalk::test
