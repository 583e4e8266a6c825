#include "topology/node_ranks.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>

namespace ropewalk::topology {
namespace {

// Returns the first of these variables that is a number of ranks.
std::optional<int> first_count(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* text = std::getenv(name);
    if (text != nullptr && std::atoi(text) > 0) return std::atoi(text);
  }
  return std::nullopt;
}

bool any_set(std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [](const char* name) { return std::getenv(name) != nullptr; });
}

}  // namespace

std::optional<int> most_tasks(const std::string& list) {
  std::optional<int> most;
  for (std::size_t at = 0; at < list.size();) {
    int tasks = 0;
    const auto [end, error] = std::from_chars(list.data() + at, list.data() + list.size(), tasks);
    if (error == std::errc() && tasks > 0) most = std::max(most.value_or(0), tasks);
    const std::size_t comma = list.find(',', static_cast<std::size_t>(end - list.data()));
    at = comma == std::string::npos ? list.size() : comma + 1;
  }
  return most;
}

std::optional<int> told_node_ranks() {
  const auto told = first_count({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                 "MV2_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE"});
  if (told) return told;
  const char* tasks = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  return tasks == nullptr ? std::nullopt : most_tasks(tasks);
}

int expected_node_ranks() {
  if (const auto told = told_node_ranks()) return *told;
  const int cpus = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  if (const auto job = first_count({"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"})) {
    return std::min(*job, cpus);
  }
  return any_set({"PMI_RANK", "PMIX_RANK", "PALS_RANKID", "FLUX_TASK_RANK"}) ? cpus : 1;
}

}  // namespace ropewalk::topology
