#include "schedule/placement.hpp"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string>

#include "mpi/mpi.hpp"
#include "os/cores.hpp"
#include "topology/machine.hpp"
#include "topology/node_ranks.hpp"
#include "transport/agreement.hpp"

namespace ropewalk::schedule {
namespace {

void check(const ThreadTeamOptions& options) {
  if (options.threads >= 0 && options.threads <= ThreadTeam::max_threads) return;
  throw Error(ErrorCode::argument,
              "threads: " + std::to_string(options.threads) + ", expected 1 to " +
                  std::to_string(ThreadTeam::max_threads) + "; pass 0 for one a core of this rank");
}

// Returns the first of these variables that is a number; 0 where none is.
int first_number(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* text = std::getenv(name);
    if (text != nullptr && std::atoi(text) > 0) return std::atoi(text);
  }
  return 0;
}

ThreadTeamOptions unpinned_among_strangers(ThreadTeamOptions options, const RanksAsked& asked) {
  options.pin = options.pin && !has_strangers(asked);
  return options;
}

}  // namespace

// How many ranks there are on the node says the launcher; where none does, all ranks of the job may
// be here: as MPI says, or PMI or Slurm.
bool has_strangers(const RanksAsked& asked) {
  if (const auto local = topology::told_node_ranks()) return *local > asked.here;
  if (mpi::loaded() && mpi::initialized() && !mpi::finalized()) {
    return mpi::size(mpi::comm_world()) > asked.everywhere;
  }
  return first_number({"PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) > asked.everywhere;
}

Placement place(std::span<const int> cores, int position, int neighbours, int quota,
                const ThreadTeamOptions& options) {
  check(options);
  const auto count = static_cast<int>(cores.size());
  const int usable = std::min(count, std::max(quota, 1));
  Placement made;
  made.threads = options.threads > 0 ? options.threads : std::max(1, usable / neighbours);
  made.crowded = made.threads > usable / neighbours;
  if (!options.pin || made.crowded) return made;
  const auto first = cores.begin() + count * position / neighbours;
  made.cores.assign(first, first + made.threads);
  return made;
}

Placement place_alone(const ThreadTeamOptions& options) {
  return place(os::process_cores(), 0, 1, topology::usable_cpus().count(),
               unpinned_among_strangers(options, {1, 1}));
}

Placement place_together(Communicator communicator, const ThreadTeamOptions& options) {
  const std::vector<int> cores = os::process_cores();
  EndpointOptions none;
  none.lanes = 1;
  none.threads = false;
  const transport::Agreement agreement =
      transport::agree({communicator.handle()}, transport::local_facts(none, cores));
  const int quota = topology::usable_cpus().quota ? topology::usable_cpus().count()
                                                  : static_cast<int>(cores.size());
  return place(cores, agreement.position, agreement.neighbours, quota,
               unpinned_among_strangers(options, {agreement.beside, communicator.size()}));
}

}  // namespace ropewalk::schedule
