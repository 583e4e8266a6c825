// Rounds over the variants; see measure.hpp.
#include "gradient/measure.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>

#include "common/machine.hpp"
#include "common/parse.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr double sample_us = 5000;  // a round of a variant lasts this long, or one call
constexpr double quick_sample_us = 2000;
constexpr double long_us = 2e6;  // calls of this length are measured in few rounds
constexpr int few_rounds = 3;
constexpr int most_iterations = 10000;

int cores_of_this_rank() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Bound ranks have cores of their own, others share those of the node. Never more threads than
// cores, as nobody would run it.
int threads_for(const GradientOptions& options, const Ranks& ranks) {
  if (options.threads > 0) return options.threads;
  return std::clamp(cores_of_this_rank() / std::max(1, ranks.node_size()), 1, 8);
}

float element(int rank, std::size_t index, unsigned serial) {
  const std::size_t mixed =
      index * 3 + static_cast<std::size_t>(rank) * 131 + std::size_t{serial} * 17;
  return static_cast<float>(mixed & 1023);
}

void check_memory(std::size_t wanted) {
  const std::size_t available = available_memory();
  if (available == 0 || wanted <= available / 10 * 9) return;
  throw Error(ErrorCode::memory, fmt::format("--lengths: the buffers of this node's ranks take {}, "
                                             "and {} are free; give shorter vectors",
                                             size_text(wanted), size_text(available)));
}

}  // namespace

// One call; the result lies at the address it returns until the next one, or until `release`.
struct GradientMeasurement::Variant {
  std::function<const float*(Stopwatch&)> call;
  std::function<void(const float*)> release = [](const float*) {};
};

// Input, output, and of each ring a result or what it adds from; published takes its own.
std::size_t memory_of(std::size_t length, int node_ranks) {
  return length * sizeof(float) * 5 * static_cast<std::size_t>(node_ranks);
}

GradientMeasurement::GradientMeasurement(const GradientOptions& options, const Ranks& ranks,
                                         std::size_t longest)
    : options_(options), ranks_(ranks), plain_(ranks), node_(ranks.communicator()) {
  ranks.jointly([&] {
    check_memory(memory_of(longest, ranks.node_size()));
    input_ = Buffer<float>(longest);
    output_ = Buffer<float>(longest);
    backing_ = backing_of("arena", input_.data(), input_.bytes());
  });
  const auto wanted = [&](const char* name) {
    return std::ranges::find(options.variant_list, name) != options.variant_list.end();
  };
  published_ = std::make_unique<PublishedRing>(ranks);
  if (wanted("improved")) {
    improved_ = std::make_unique<ImprovedRing>(ranks, threads_for(options, ranks), longest);
  }
  if (node_.nodes() == 1) everybody_ = everybody(ranks, node_, input_.data(), output_.data());
}

GradientMeasurement::~GradientMeasurement() = default;

GradientMeasurement::Variant GradientMeasurement::variant(const std::string& name,
                                                          std::size_t length) {
  if (name == "published") {
    return {[this, length](Stopwatch& communication) -> const float* {
              return published_->reduce(input_.data(), length, communication);
            },
            [](const float* result) { delete[] result; }};
  }
  if (name == "improved") {
    return {[this, length](Stopwatch& communication) {
      return improved_->reduce(input_.data(), length, communication);
    }};
  }
  if (name == "mpi") {
    return {[this, length](Stopwatch& communication) -> const float* {
      Run run{{Op::allreduce, length * sizeof(float), ranks_.size(), ranks_.rank()},
              input_.data(),
              output_.data(),
              1,
              false,
              0,
              nullptr};
      communication.time([&] { time_plain(plain_, run); });
      return output_.data();
    }};
  }
  // It adds while it communicates: the whole call counts as communication.
  plan_ = std::make_unique<ReductionPlan>(
      ranks_.communicator(),
      std::vector<PlanTensor>{{length, ElementType::float32, input_.data(), output_.data()}},
      ReductionPlanOptions{.fuse_bytes = 0});
  return {[this](Stopwatch& communication) -> const float* {
    communication.time([&] { plan_->reduce(); });
    return output_.data();
  }};
}

// Calls a round, the same on all ranks.
void GradientMeasurement::calibrate(Variant& variant, GradientColumn& column) const {
  Stopwatch unused;
  // Connections, registrations and pages of the MPI itself.
  variant.release(variant.call(unused));
  const double wanted = options_.common.quick ? quick_sample_us : sample_us;
  for (column.iterations = 1;;) {
    ranks_.barrier();
    const double begin = now_us();
    for (int i = 0; i < column.iterations; ++i) variant.release(variant.call(unused));
    const double time = std::max(ranks_.max(now_us() - begin), 0.01);
    const double each = time / column.iterations;
    const int next =
        static_cast<int>(std::clamp(std::round(wanted / each), 1.0, double{most_iterations}));
    const bool enough = time >= wanted / 4 || next <= column.iterations;
    column.iterations = enough ? next : std::min(next, column.iterations * 8);
    if (enough) return;
  }
}

void GradientMeasurement::sample(Variant& variant, GradientColumn& column) const {
  Stopwatch warm;
  variant.release(variant.call(warm));  // the others have left the caches as they like
  Stopwatch communication;
  ranks_.barrier();
  const double begin = now_us();
  for (int i = 0; i < column.iterations; ++i) variant.release(variant.call(communication));
  const double wall = now_us() - begin;
  column.wall.push_back(ranks_.max(wall) / column.iterations);
  column.communication.push_back(ranks_.sum(communication.us()) / ranks_.size() /
                                 column.iterations);
}

// One call on data that only it has seen.
void GradientMeasurement::verify(Variant& variant, std::size_t length, std::string& wrong) {
  ++serial_;
  for (std::size_t i = 0; i < length; ++i) input_[i] = element(ranks_.rank(), i, serial_);
  ranks_.barrier();
  Stopwatch unused;
  const float* result = variant.call(unused);
  for (std::size_t i = 0; i < length && wrong.empty(); ++i) {
    float right = 0;
    for (int rank = 0; rank < ranks_.size(); ++rank) right += element(rank, i, serial_);
    if (result[i] == right) continue;
    wrong = fmt::format("{} floats: element {} on rank {} is {}, expected {}", length, i,
                        ranks_.rank(), result[i], right);
  }
  variant.release(result);
  ranks_.barrier();
}

// The same loads and stores without synchronisation, by whichever stores are faster.
double GradientMeasurement::sample_limit(std::size_t length) {
  Run run{{Op::allreduce, length * sizeof(float), ranks_.size(), ranks_.rank()},
          input_.data(),
          output_.data(),
          1,
          false,
          0,
          nullptr};
  double best = 0;
  for (const auto stores : {kernels::Stores::temporal, kernels::Stores::streaming}) {
    run.iterations = 1;
    time_limit(everybody_, run, stores);
    ranks_.barrier();
    const double one = ranks_.max(time_limit(everybody_, run, stores));
    run.iterations = static_cast<int>(std::clamp(sample_us / std::max(one, 0.1), 1.0, 1000.0));
    ranks_.barrier();
    const double time = ranks_.max(time_limit(everybody_, run, stores)) / run.iterations;
    if (best == 0 || time < best) best = time;
  }
  return best;
}

std::string GradientMeasurement::first_wrong(const std::string& mine) const {
  if (ranks_.all(mine.empty())) return "";
  for (const std::string& wrong : ranks_.gather(mine)) {
    if (!wrong.empty()) return wrong;
  }
  return mine;
}

GradientResult GradientMeasurement::measure(std::size_t length) {
  GradientResult result;
  result.length = length;
  std::vector<Variant> variants;
  double longest = 0;
  for (const std::string& name : options_.variant_list) {
    variants.push_back(variant(name, length));
    result.columns.push_back({name, 1, {}, {}});
    verify(variants.back(), length, result.wrong);
    const double begin = now_us();
    calibrate(variants.back(), result.columns.back());
    longest = std::max(longest, now_us() - begin);
  }
  const int wanted = options_.common.rounds_or(10, few_rounds);
  const int rounds = ranks_.max(longest) > long_us ? std::min(few_rounds, wanted) : wanted;
  for (int round = 0; round < rounds; ++round) {
    // Each round begins with another variant, so that none always follows the same one.
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const std::size_t turn = (i + static_cast<std::size_t>(round)) % variants.size();
      sample(variants[turn], result.columns[turn]);
    }
    if (!everybody_.send.empty() && length * sizeof(float) >= least_limit_bytes) {
      result.limit.push_back(sample_limit(length));
    }
  }
  for (std::size_t i = 0; i < variants.size(); ++i) {
    verify(variants[i], length, result.wrong);
  }
  if (plan_ != nullptr) result.path = name(plan_->last_path());
  result.wrong = first_wrong(result.wrong);
  return result;
}

}  // namespace ropewalk::bench
