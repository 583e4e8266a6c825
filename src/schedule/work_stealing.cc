// WorkStealing shares iterations out in blocks over the ranges of the workers, and knows where the
// workers are.
#include <algorithm>
#include <string>
#include <vector>

#include "os/affinity.hpp"
#include "ropewalk/schedule.hpp"
#include "schedule/ranges.hpp"
#include "topology/machine.hpp"

namespace ropewalk {
namespace {

// Blocks are small enough that workers end together and look after messages in time, and large
// enough that a block's 10 ns do not matter.
constexpr std::size_t blocks_each = 256;

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorCode::argument, text); }

// Returns the NUMA node of each CPU; empty where there is one node only.
const std::vector<int>& nodes_of_cpus() {
  static const std::vector<int> nodes = [] {
    std::vector<int> found;
    const topology::Machine machine = topology::read_machine();
    if (machine.nodes.size() < 2) return found;
    for (const topology::NumaNode& node : machine.nodes) {
      for (const int cpu : node.cpus) {
        const auto index = static_cast<std::size_t>(cpu);
        if (found.size() <= index) found.resize(index + 1, 0);
        found[index] = node.number;
      }
    }
    return found;
  }();
  return nodes;
}

int sharing_workers(int workers, int communicating) {
  if (workers < 1) {
    refuse("workers: " + std::to_string(workers) +
           ", expected at least 1; pass the number of "
           "threads that will run the loop");
  }
  if (communicating < 0 || communicating > workers) {
    refuse("communicating_workers: " + std::to_string(communicating) + ", expected 0 to the " +
           std::to_string(workers) + " workers; they are counted among the workers");
  }
  return communicating == workers ? workers : workers - communicating;
}

}  // namespace

struct WorkStealing::State {
  State(int workers, int communicating_workers)
      : ranges(workers, sharing_workers(workers, communicating_workers)),
        communicating(communicating_workers) {}

  // What is refused leaves the loop as it was.
  void set(std::size_t count, std::size_t wanted_block) {
    const auto workers = static_cast<std::size_t>(ranges.workers());
    const std::size_t each =
        wanted_block > 0 ? wanted_block : std::max<std::size_t>(1, count / workers / blocks_each);
    const std::size_t blocks = count / each + (count % each != 0 ? 1 : 0);
    if (blocks > schedule::Ranges::most_blocks) {
      refuse("block: " + std::to_string(each) + " makes " + std::to_string(blocks) +
             " blocks, expected fewer than 2^32; pass at least " +
             std::to_string(count / schedule::Ranges::most_blocks + 1) + ", or 0");
    }
    ranges.reset(blocks);
    iterations = count;
    block = each;
  }

  schedule::Ranges ranges;
  int communicating;
  std::size_t iterations = 0;
  std::size_t block = 1;
  const std::vector<int>& nodes = nodes_of_cpus();
};

WorkStealing::WorkStealing(std::size_t iterations, int workers, int communicating_workers,
                           std::size_t block)
    : state_(std::make_unique<State>(workers, communicating_workers)) {
  state_->set(iterations, block);
}
WorkStealing::WorkStealing(WorkStealing&&) noexcept = default;
WorkStealing& WorkStealing::operator=(WorkStealing&&) noexcept = default;
WorkStealing::~WorkStealing() = default;

std::size_t WorkStealing::iterations() const noexcept { return state_->iterations; }
int WorkStealing::workers() const noexcept { return state_->ranges.workers(); }
int WorkStealing::communicating_workers() const noexcept { return state_->communicating; }
std::size_t WorkStealing::block() const noexcept { return state_->block; }

IterationRange WorkStealing::next(int worker) {
  schedule::Ranges& ranges = state_->ranges;
  if (worker < 0 || worker >= ranges.workers()) {
    refuse("worker: " + std::to_string(worker) + ", expected 0 to " +
           std::to_string(ranges.workers() - 1) +
           "; make the loop for as many workers as there "
           "are threads");
  }
  // A thread may have moved since the last loop.
  if (!state_->nodes.empty() && ranges.enters(worker)) {
    const auto cpu = static_cast<std::size_t>(os::current_cpu());
    ranges.set_place(worker, cpu < state_->nodes.size() ? state_->nodes[cpu] : 0);
  }
  const schedule::Ranges::Taken taken = ranges.take(worker);
  using Kind = schedule::Ranges::Taken::Kind;
  if (taken.kind == Kind::done) return {};
  if (taken.kind == Kind::absent) {
    refuse("worker: " + std::to_string(taken.number) +
           " was not in the last loop, or has not "
           "come to the barrier behind it; have each worker call next() until it gives an empty "
           "range, then a barrier, in every loop; call reset() before the next one");
  }
  const std::size_t begin = state_->block * taken.number;
  return {begin, std::min(begin + state_->block, state_->iterations)};
}

void WorkStealing::reset() {
  state_->ranges.reset(state_->iterations / state_->block +
                       (state_->iterations % state_->block != 0));
}
void WorkStealing::reset(std::size_t iterations, std::size_t block) {
  state_->set(iterations, block);
}

WorkStealing::Counts WorkStealing::counts(int worker) const {
  if (worker < 0 || worker >= workers()) {
    refuse("worker: " + std::to_string(worker) + ", expected 0 to " +
           std::to_string(workers() - 1) + "; pass one of the loop's workers");
  }
  const schedule::WorkerSlot& slot = state_->ranges.slot(worker);
  return {slot.own, slot.stolen};
}

}  // namespace ropewalk
