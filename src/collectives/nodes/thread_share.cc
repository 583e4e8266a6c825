// How many threads reduce on a rank, from what the other ranks on its cores leave it, and how many
// lanes communicate.
#include <algorithm>
#include <array>
#include <string>

#include "collectives/nodes/reduction_threads.hpp"
#include "os/cores.hpp"
#include "settings/value.hpp"
#include "topology/machine.hpp"
#include "transport/agreement.hpp"

namespace ropewalk::collectives::nodes {
namespace {

// Memory of a node feeds no more threads with sums than some eight.
constexpr int most_automatic_threads = 8;

int usable_cores(std::size_t cores) {
  const auto quota = topology::usable_cpus().quota;
  const int all = static_cast<int>(cores);
  return quota ? std::clamp(static_cast<int>(*quota), 1, all) : all;
}

}  // namespace

int wished_threads() {
  return static_cast<int>(settings::get(settings::Id::reduction_threads).number);
}

int checked_threads(int threads) {
  if (threads >= 0 && threads <= ReductionThreads::most_threads) return threads;
  throw Error(ErrorCode::argument, "threads: " + std::to_string(threads) + ", expected 1 to " +
                                       std::to_string(ReductionThreads::most_threads) +
                                       "; pass 0 for an automatic choice");
}

ThreadShare share_threads(mpi::Comm comm, int wanted, bool may_communicate) {
  const std::vector<int> cores = os::process_cores();
  EndpointOptions caller_alone;
  caller_alone.lanes = 1;
  caller_alone.threads = false;
  transport::EndpointFacts facts = transport::local_facts(caller_alone, cores);
  const transport::Agreement agreement = transport::agree(comm, facts);
  const int share = std::max(1, usable_cores(cores.size()) / agreement.neighbours);
  ThreadShare made;
  made.threads = wanted > 0 ? wanted : std::min(share, most_automatic_threads);
  made.crowded = made.threads > share;
  const bool multiple = mpi::thread_level() == mpi::ThreadLevel::multiple;
  const int own = may_communicate && multiple ? std::clamp(facts.wish, 1, made.threads) : 1;
  std::array<std::int64_t, 2> least{own, facts.wish};
  mpi::all_reduce(least, mpi::Combine::min, comm);
  if (least[1] < 0) {
    throw Error(ErrorCode::argument,
                "ROPEWALK_LANES: no number from 1 to " + std::to_string(EndpointSet::max_lanes) +
                    " on some rank; unset it for an automatic choice, or correct it");
  }
  made.communicating = static_cast<int>(least[0]);
  return made;
}

}  // namespace ropewalk::collectives::nodes
