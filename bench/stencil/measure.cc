#include "stencil/measure.hpp"

#include <algorithm>
#include <cmath>

#include "common/rank_grid.hpp"
#include "common/statistics.hpp"

namespace ropewalk::bench {
namespace {

constexpr double sample_us = 5000;
constexpr double quick_sample_us = 2000;
constexpr int most_iterations = 100000;
// What is assumed when the time is announced: microseconds of a cell that is computed, and filled
// and checked; of a message and of a byte of it.
constexpr double usual_cell_us = 0.002;
constexpr double usual_checked_cell_us = 0.015;
constexpr double usual_message_us = 5;
constexpr double usual_byte_us = 0.0005;

EndpointOptions plain_endpoints() {
  EndpointOptions options;
  options.lanes = 1;
  options.threads = false;
  return options;
}

// What one thread of a rank does in a step. A way that is not shared is called by the first, for
// which the others wait.
class WorkerStep {
 public:
  WorkerStep(StencilWay& way, StencilBlock& block, ThreadTeam& team, int worker)
      : way_(way), block_(block), team_(team), worker_(worker) {}

  void run(Computing computing) {
    const int workers = team_.size();
    if (computing != Computing::meanwhile) {
      exchange();
      if (computing == Computing::after) block_.update_all(worker_, workers);
      return;
    }
    start();
    block_.update_interior(worker_, workers);
    wait();
    block_.update_boundary(worker_, workers);
  }

 private:
  void exchange() {
    if (!way_.is_shared()) return lead([&] { way_.exchange(); });
    way_.start_worker(worker_);
    way_.wait_worker(worker_);
  }
  void start() {
    if (way_.is_shared()) return way_.start_worker(worker_);
    if (worker_ == 0) way_.start();
  }
  void wait() {
    if (way_.is_shared()) return way_.wait_worker(worker_);
    lead([&] { way_.wait(); });
  }
  template <class Call>
  void lead(Call&& call) {
    if (worker_ == 0) call();
    team_.barrier();
  }

  StencilWay& way_;
  StencilBlock& block_;
  ThreadTeam& team_;
  int worker_;
};

}  // namespace

struct StencilMeasurement::Column {
  StencilTimes times;
  std::shared_ptr<StencilWay> way;
};

StencilMeasurement::StencilMeasurement(const StencilOptions& options, const Ranks& ranks)
    : options_(options),
      ranks_(ranks),
      rounds_(options.common.rounds_or(20, 5)),
      grid_(ranks.communicator(), rank_grid(options.extents, ranks.size(), 3),
            std::vector<bool>(3, options.periodic)),
      endpoints_(ranks.communicator(), plain_endpoints()),
      team_(ranks.communicator(), {.threads = options.threads}) {
  std::vector<Expected> parts;
  for (std::size_t kind = 0; kind < options.memory_list.size(); ++kind) {
    for (const std::size_t size : options.size_list) parts.push_back(expected(size));
  }
  budget_.emplace(options.common, ranks, parts);
}

double StencilMeasurement::full_sample_us() const {
  return options_.common.quick ? quick_sample_us : sample_us;
}

Expected StencilMeasurement::expected(std::size_t face_bytes) const {
  const double cells = std::pow(edge_of(face_bytes), 3);
  const double exchange = usual_message_us + usual_byte_us * static_cast<double>(face_bytes);
  const auto columns =
      static_cast<double>(options_.way_list.size() * options_.computing_list.size());
  return sampling(columns, rounds_, full_sample_us(),
                  exchange + cells * (usual_cell_us + usual_checked_cell_us));
}

std::vector<StencilMeasurement::Column> StencilMeasurement::columns(StencilBlock& block) {
  std::vector<Column> all;
  for (const std::string& name : options_.way_list) {
    const std::shared_ptr<StencilWay> way =
        make_way(name, grid_, endpoints_, block, options_.threads);
    if (way == nullptr) continue;
    for (const Computing computing : options_.computing_list) {
      all.push_back({{name, computing, way->path()}, way});
    }
  }
  return all;
}

void StencilMeasurement::step(StencilWay& way, StencilBlock& block, Computing computing) {
  team_.run([&](int worker) { WorkerStep(way, block, team_, worker).run(computing); });
}

// Of the slowest rank. The first step brings back what other columns have put out of the caches.
double StencilMeasurement::sample(Column& column, StencilBlock& block, int iterations) {
  step(*column.way, block, column.times.computing);
  ranks_.barrier();
  const double begin = now_us();
  for (int i = 0; i < iterations; ++i) step(*column.way, block, column.times.computing);
  return ranks_.max(now_us() - begin) / iterations;
}

void StencilMeasurement::calibrate(Column& column, StencilBlock& block, double wanted_us) {
  int& iterations = column.times.iterations;
  for (;;) {
    const double each = sample(column, block, iterations);
    if (each * iterations >= wanted_us / 4 || iterations >= most_iterations) {
      iterations = std::clamp(static_cast<int>(wanted_us / each), 1, most_iterations);
      return;
    }
    iterations *= 4;
  }
}

double StencilMeasurement::checked(Column& column, StencilBlock& block, std::string& wrong) {
  block.fill(++serial_);
  const double us = sample(column, block, column.times.iterations);
  const bool updated = column.times.computing != Computing::none;
  if (!wrong.empty()) return us;
  wrong = block.check(serial_, updated);
  if (!wrong.empty()) wrong = column.times.way + ": " + wrong;
  return us;
}

StencilSizeResult StencilMeasurement::measure(const std::string& memory, std::size_t face_bytes) {
  budget_->begin();
  std::unique_ptr<StencilBlock> block;
  ranks_.collectively([&] {
    block = std::make_unique<StencilBlock>(grid_, edge_of(face_bytes), memory == "arena");
  });
  StencilSizeResult result;
  result.memory = memory;
  result.face_bytes = block->face_bytes();
  result.edge = block->edge();
  block->fill(serial_);
  std::vector<Column> all = columns(*block);
  const double samples = least_samples(static_cast<double>(all.size()));
  const double wanted = budget_->sample_us(full_sample_us(), samples);
  for (Column& column : all) calibrate(column, *block, wanted);
  int rounds = rounds_;
  const double begun = now_us();
  for (int round = 0; round < rounds; ++round) {
    if (round == 1) rounds = budget_->rounds(rounds_, now_us() - begun);
    // Each round begins with another column, so that none always follows the same one.
    for (std::size_t i = 0; i < all.size(); ++i) {
      Column& column = all[(i + static_cast<std::size_t>(round)) % all.size()];
      column.times.us.push_back(checked(column, *block, result.wrong));
    }
  }
  for (Column& column : all) result.times.push_back(std::move(column.times));
  const std::size_t width = static_cast<std::size_t>(result.edge) + 2;
  result.backing = backing_of(memory, block->cells(), width * width * width * sizeof(double));
  result.wrong = ranks_.first_text(result.wrong);
  return result;
}

}  // namespace ropewalk::bench
