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
std::vector<int> threads_for(const GradientOptions& options, const Ranks& ranks) {
  if (!options.thread_list.empty()) return options.thread_list;
  return {std::clamp(cores_of_this_rank() / std::max(1, ranks.node_size()), 1, 8)};
}

bool is_wanted(const GradientOptions& options, const char* variant) {
  return std::ranges::find(options.variant_list, variant) != options.variant_list.end();
}

// How many columns there are: `improved` has one for each pair of its axes.
std::size_t columns_of(const GradientOptions& options, std::size_t rings) {
  const std::size_t others = options.variant_list.size() - (is_wanted(options, "improved") ? 1 : 0);
  return others + rings;
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

// Counts the input, the output, what the published ring takes by itself, and for each kind of pages
// a result and what is added from.
std::size_t memory_of(std::size_t length, int node_ranks, std::size_t kinds_of_pages) {
  const std::size_t vectors = 3 + 2 * kinds_of_pages;
  return length * sizeof(float) * vectors * static_cast<std::size_t>(node_ranks);
}

GradientMeasurement::GradientMeasurement(const GradientOptions& options, const Ranks& ranks,
                                         std::size_t longest)
    : options_(options),
      ranks_(ranks),
      plain_(ranks),
      node_(ranks.communicator()),
      rounds_(options.common.rounds_or(10, Budget::least_rounds)) {
  ranks.collectively([&] {
    check_memory(memory_of(longest, ranks.node_size(), options.page_list.size()));
    input_ = Buffer<float>(longest);
    output_ = Buffer<float>(longest);
    backing_ = backing_of("arena", input_.data(), input_.bytes());
  });
  published_ = std::make_unique<PublishedRing>(ranks);
  if (is_wanted(options, "improved")) make_rings(longest);
  if (node_.nodes() == 1) everybody_ = everybody(ranks, node_, input_.data(), output_.data());
  budget_.emplace(options.common, ranks, expected());
}

// Collective: each ring duplicates communicators.
void GradientMeasurement::make_rings(std::size_t longest) {
  for (const std::string& pages : options_.page_list) {
    ranks_.collectively([&] {
      ring_buffers_.push_back(std::make_unique<RingBuffers>(pages, ranks_.size(), longest));
    });
    for (const int threads : threads_for(options_, ranks_)) {
      improved_.push_back(std::make_unique<ImprovedRing>(ranks_, threads, *ring_buffers_.back()));
    }
  }
}

std::string GradientMeasurement::threads() const {
  const std::vector<int> counts = threads_for(options_, ranks_);
  return improved_.empty() ? "0" : fmt::format("{}", fmt::join(counts, ", "));
}

std::vector<BackingReport> GradientMeasurement::ring_backings() const {
  std::vector<BackingReport> found;
  for (const auto& buffers : ring_buffers_) {
    found.push_back(bench::backing(buffers->pages, buffers->result));
  }
  return found;
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
  const auto variants = static_cast<double>(columns_of(options_, improved_.size()));
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

GradientMeasurement::Variant GradientMeasurement::improved(ImprovedRing& ring, std::size_t length) {
  return {[this, &ring, length](Stopwatch& communication) {
    return ring.reduce(input_.data(), length, communication);
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

// The variant alone names the only pair of axes there is.
std::string GradientMeasurement::name_of(const ImprovedRing& ring) const {
  if (improved_.size() == 1) return "improved";
  return fmt::format("improved {} {}", ring.buffers().pages, ring.threads());
}

// Makes the variant a column, after its first calls.
void GradientMeasurement::add(std::vector<Variant>& variants, GradientResult& result,
                              const std::string& name, Variant made) {
  const auto count = static_cast<double>(columns_of(options_, improved_.size()));
  const double wanted = budget_->sample_us(full_sample_us(), least_samples(count));
  variants.push_back(std::move(made));
  result.columns.push_back({name, 1, {}, {}, 0, {}});
  verify(variants.back(), result.length, result.wrong);
  calibrate(variants.back(), result.columns.back(), wanted);
}

GradientResult GradientMeasurement::measure(std::size_t length) {
  budget_->begin();
  GradientResult result;
  result.length = length;
  std::vector<Variant> variants;
  for (const std::string& name : options_.variant_list) {
    if (name != "improved") add(variants, result, name, variant(name, length));
    if (name != "improved") continue;
    for (const auto& ring : improved_) {
      add(variants, result, name_of(*ring), improved(*ring, length));
      result.columns.back().threads = ring->threads();
      result.columns.back().pages = ring->buffers().pages;
    }
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
