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
// What is assumed when the time is announced: rates of memory and of a network that nobody has
// named, how often a call of a ring goes over its vector, and the fixed cost of a call.
constexpr double usual_mb_per_s = 8000;
constexpr double usual_network_mb_per_s = 1000;
constexpr double passes_of_a_call = 8;
constexpr double usual_call_us = 50;
constexpr double usual_checked_mb_per_s = 1000;
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

// Counts the input, the output, and for each ring a result or what it adds from; the published ring
// takes its own.
std::size_t memory_of(std::size_t length, int node_ranks) {
  return length * sizeof(float) * 5 * static_cast<std::size_t>(node_ranks);
}

GradientMeasurement::GradientMeasurement(const GradientOptions& options, const Ranks& ranks,
                                         std::size_t longest)
    : options_(options),
      ranks_(ranks),
      plain_(ranks),
      node_(ranks.communicator()),
      rounds_(options.common.rounds_or(10, Budget::least_rounds)) {
  ranks.collectively([&] {
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
  budget_.emplace(options.common, ranks, expected());
}

bool GradientMeasurement::limited(std::size_t length) const {
  return !everybody_.send.empty() && length * sizeof(float) >= least_limit_bytes;
}

double GradientMeasurement::full_sample_us() const {
  return options_.common.quick ? quick_sample_us : sample_us;
}

// What each length will take, at rates that machines usually have.
std::vector<Expected> GradientMeasurement::expected() const {
  const double network = options_.line_rate > 0 ? options_.line_rate / 1e6 : usual_network_mb_per_s;
  const auto variants = static_cast<double>(options_.variant_list.size());
  std::vector<Expected> all;
  for (const std::size_t length : options_.length_list) {
    const double bytes = static_cast<double>(length * sizeof(float));
    double call = usual_call_us + passes_of_a_call * bytes * ranks_.node_size() / usual_mb_per_s;
    if (node_.nodes() > 1) call += 2 * bytes / network;
    const double columns = variants + (limited(length) ? 2 : 0);  // two kinds of stores
    const double check = call + bytes * ranks_.node_size() / usual_checked_mb_per_s;
    Expected sum = sampling(columns, rounds_, full_sample_us(), call);
    sum.all_us += variants * 2 * check;
    sum.least_us += variants * 2 * check;
    all.push_back(sum);
  }
  return all;
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
void GradientMeasurement::calibrate(Variant& variant, GradientColumn& column, double wanted) const {
  Stopwatch unused;
  // The first call makes connections, registrations and pages of the MPI itself.
  variant.release(variant.call(unused));
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

GradientResult GradientMeasurement::measure(std::size_t length) {
  budget_->begin();
  GradientResult result;
  result.length = length;
  const auto count = static_cast<double>(options_.variant_list.size());
  const double wanted = budget_->sample_us(full_sample_us(), least_samples(count));
  std::vector<Variant> variants;
  for (const std::string& name : options_.variant_list) {
    variants.push_back(variant(name, length));
    result.columns.push_back({name, 1, {}, {}});
    verify(variants.back(), length, result.wrong);
    calibrate(variants.back(), result.columns.back(), wanted);
  }
  int rounds = rounds_;
  const double begun = now_us();
  for (int round = 0; round < rounds; ++round) {
    if (round == 1) rounds = budget_->rounds(rounds_, now_us() - begun);
    // Each round begins with another variant, so that none always follows the same one.
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const std::size_t turn = (i + static_cast<std::size_t>(round)) % variants.size();
      sample(variants[turn], result.columns[turn]);
    }
    if (limited(length)) result.limit.push_back(sample_limit(length));
  }
  for (std::size_t i = 0; i < variants.size(); ++i) {
    verify(variants[i], length, result.wrong);
  }
  if (plan_ != nullptr) result.path = name(plan_->last_path());
  result.wrong = ranks_.first_text(result.wrong);
  return result;
}

}  // namespace ropewalk::bench
