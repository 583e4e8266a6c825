// Tests the number of ranks on a node, as launchers give it.
#include "topology/node_ranks.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace ropewalk::topology {
namespace {

class NodeRanks : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE",
          "PMI_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE",
          "SLURM_STEP_NUM_TASKS", "PMI_RANK", "PMIX_RANK", "PALS_RANKID", "FLUX_TASK_RANK"}) {
      unsetenv(name);
    }
  }
  static int cpus() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }
};

TEST_F(NodeRanks, OfAProcessByItselfAreOne) {
  EXPECT_EQ(told_node_ranks(), std::nullopt);
  EXPECT_EQ(expected_node_ranks(), 1);
}

TEST_F(NodeRanks, AreToldByLaunchers) {
  setenv("SLURM_STEP_TASKS_PER_NODE", "4(x2),12,3(x17)", 1);
  EXPECT_EQ(told_node_ranks(), 12);
  setenv("MPI_LOCALNRANKS", "5", 1);
  EXPECT_EQ(told_node_ranks(), 5);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "7", 1);
  EXPECT_EQ(expected_node_ranks(), 7);
}

TEST_F(NodeRanks, AreAtMostTheJobsAndTheCpus) {
  setenv("PMIX_RANK", "0", 1);
  EXPECT_EQ(expected_node_ranks(), cpus());
  setenv("PMI_SIZE", "2", 1);
  EXPECT_EQ(expected_node_ranks(), std::min(2, cpus()));
  setenv("PMI_SIZE", "1000000", 1);
  EXPECT_EQ(expected_node_ranks(), cpus());
}

TEST_F(NodeRanks, ListsThatAreNoneSayNothing) {
  for (const char* list : {"", ",", "x", "(x2)", "-3", "0(x4)"}) {
    EXPECT_EQ(most_tasks(list), std::nullopt) << list;
  }
  EXPECT_EQ(most_tasks("8"), 8);
  EXPECT_EQ(most_tasks("2,x,6(x3)"), 6);
}

}  // namespace
}  // namespace ropewalk::topology
