#include "window_ranks.hpp"

#include <unistd.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "mpi/attributes.hpp"
#include "mpi/collectively.hpp"
#include "node/machine_share.hpp"
#include "node/rank_nodes.hpp"
#include "os/pidfd.hpp"

namespace ropewalk::preload::onesided {
namespace {

// Names one process, whose number may go to another later.
struct ProcessName {
  std::int64_t process = 0;
  std::uint64_t start = 0;  // 0: unknown
  bool operator<(const ProcessName& other) const noexcept {
    return std::pair(process, start) < std::pair(other.process, other.start);
  }
};

struct Watched {
  std::mutex mutex;
  std::map<ProcessName, std::shared_ptr<node::Peer>> processes;
};

// Never ended: windows may be freed after static destructors have run.
Watched& watched() {
  static Watched* const all = new Watched;
  return *all;
}

ProcessName name_of(pid_t process) noexcept { return {process, os::start_of_process(process)}; }

std::shared_ptr<node::Peer> watch(const ProcessName& named, const ProcessName& own) {
  auto peer = std::make_shared<node::Peer>();
  const auto process = static_cast<pid_t>(named.process);
  peer->process = process;
  peer->self = named.process == own.process && named.start == own.start;
  const bool seen = named.start != 0 && name_of(process).start == named.start;
  if (!peer->self && seen) peer->life = os::ProcessWatch(process);
  return peer;
}

// By MPI, which must map the memory, and by ROPEWALK_NODES.
bool share_node(mpi::Comm comm) {
  for (const int node : node::nodes_of_ranks(comm)) {
    if (node != 0) return false;
  }
  mpi::Comm near = mpi::split_shared(comm);
  const bool all = mpi::size(near) == mpi::size(comm);
  mpi::free(near);
  return all;
}

std::unique_ptr<WindowRanks> find_out(mpi::Comm comm) {
  std::unique_ptr<WindowRanks> ranks;
  mpi::collectively(comm, [&] {
    ranks = std::make_unique<WindowRanks>();
    ranks->share_node = share_node(comm);
    if (!ranks->share_node) return;
    ranks->crowded = node::crowding(comm, mpi::size(comm)).here;
    ranks->processes = processes_of(comm);
  });
  return ranks;
}

void end(void* ranks) noexcept { delete static_cast<WindowRanks*>(ranks); }

}  // namespace

const WindowRanks& window_ranks(mpi::Comm comm) {
  static const mpi::Keyval key = mpi::create_keyval(&end);
  if (void* known = mpi::attribute(comm, key)) return *static_cast<WindowRanks*>(known);
  std::unique_ptr<WindowRanks> ranks = find_out(comm);
  mpi::set_attribute(comm, key, ranks.get());
  return *ranks.release();
}

std::vector<std::shared_ptr<node::Peer>> processes_of(mpi::Comm comm) {
  const ProcessName own = name_of(getpid());
  std::vector<ProcessName> names(static_cast<std::size_t>(mpi::size(comm)));
  mpi::all_gather(&own, names.data(), sizeof own, comm);
  std::vector<std::shared_ptr<node::Peer>> peers;
  Watched& all = watched();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (const ProcessName& each : names) {
    std::shared_ptr<node::Peer>& known = all.processes[each];
    if (known == nullptr) known = watch(each, own);
    peers.push_back(known);
  }
  return peers;
}

}  // namespace ropewalk::preload::onesided
