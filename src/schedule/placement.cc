#include "schedule/placement.hpp"

#include <algorithm>
#include <string>

#include "mpi/mpi.hpp"
#include "topology/machine.hpp"
#include "transport/agreement.hpp"
#include "transport/cores.hpp"

namespace ropewalk::schedule {
namespace {

void check(const ThreadTeamOptions& options) {
  if (options.threads >= 0 && options.threads <= ThreadTeam::max_threads) return;
  throw Error(ErrorCode::argument,
              "threads: " + std::to_string(options.threads) + ", expected 1 to " +
                  std::to_string(ThreadTeam::max_threads) + "; pass 0 for one a core of this rank");
}

}  // namespace

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
  return place(transport::process_cores(), 0, 1, topology::usable_cpus().count(), options);
}

Placement place_together(Communicator communicator, const ThreadTeamOptions& options) {
  const std::vector<int> cores = transport::process_cores();
  EndpointOptions none;
  none.lanes = 1;
  none.threads = false;
  const transport::Agreement agreement =
      transport::agree({communicator.handle()}, transport::local_facts(none, cores));
  const int quota = topology::usable_cpus().quota ? topology::usable_cpus().count()
                                                  : static_cast<int>(cores.size());
  return place(cores, agreement.position, agreement.neighbours, quota, options);
}

}  // namespace ropewalk::schedule
