// This file has the loops of roofline.hpp. It is compiled with -O3 and contracted multiply-adds,
// each loop once for every instruction set.
#include "itt/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "common/parse.hpp"
#include "common/timed_threads.hpp"
#include "memory/triad.hpp"

namespace ropewalk::bench {
namespace {

// Two multiply-adds a cycle, four cycles each: eight chains keep both units busy.
constexpr std::size_t chains = 12;
// In the other mix this many chains multiply and add, and the rest only add.
constexpr std::size_t chains_that_multiply = 8;

template <class Real, std::size_t bytes, std::size_t multiply>
[[gnu::always_inline]] inline double chained(std::size_t rounds) {
  constexpr std::size_t width = bytes / sizeof(Real);
  typedef Real Vector [[gnu::vector_size(bytes)]];
  Vector sums[chains];
  Vector factor;
  Vector term;
  for (std::size_t l = 0; l < width; ++l) {
    factor[l] = static_cast<Real>(0.999);
    term[l] = static_cast<Real>(0.001);
  }
  for (Vector& sum : sums) sum = term;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < multiply; ++i) sums[i] = sums[i] * factor + term;
    for (std::size_t i = multiply; i < chains; ++i) sums[i] = sums[i] + term;
#if defined(__clang__)  // judges a register by this function's instructions, not its caller's
    asm volatile("" : "+m"(factor));
#elif defined(__x86_64__)  // not to be known from one round to the next
    asm volatile("" : "+x"(factor));
#else
    asm volatile("" : "+w"(factor));
#endif
  }
  double all = 0;
  for (const Vector& sum : sums) all += static_cast<double>(sum[0]);
  return all;
}

template <std::size_t bytes>
[[gnu::always_inline]] inline double chained(Arithmetic which, std::size_t rounds, bool doubles) {
  if (which == Arithmetic::multiply_adds) {
    return doubles ? chained<double, bytes, chains>(rounds) : chained<float, bytes, chains>(rounds);
  }
  return doubles ? chained<double, bytes, chains_that_multiply>(rounds)
                 : chained<float, bytes, chains_that_multiply>(rounds);
}

[[gnu::always_inline]] inline float added(const float* numbers, std::size_t count) {
  constexpr std::size_t width = 64;
  float sums[width] = {};
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    for (std::size_t l = 0; l < width; ++l) sums[l] += numbers[i + l];
  }
  float all = 0;
  for (const float sum : sums) all += sum;
  return all;
}

#if defined(__x86_64__)
#if defined(__clang__)
#define ROPEWALK_AVX512 [[gnu::target("avx512f,avx512dq,avx512vl"), clang::min_vector_width(512)]]
#else
#define ROPEWALK_AVX512 [[gnu::target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")]]
#endif
#define ROPEWALK_AVX2 [[gnu::target("avx2,fma")]]
ROPEWALK_AVX512 double chained_avx512(Arithmetic which, std::size_t n, bool doubles) {
  return chained<64>(which, n, doubles);
}
ROPEWALK_AVX2 double chained_avx2(Arithmetic which, std::size_t n, bool doubles) {
  return chained<32>(which, n, doubles);
}
ROPEWALK_AVX512 float added_avx512(const float* x, std::size_t n) { return added(x, n); }
ROPEWALK_AVX2 float added_avx2(const float* x, std::size_t n) { return added(x, n); }
bool has_avx512() {
  return __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

constexpr double sample_us = 3000;

std::atomic<float> kept{0};  // results that nobody needs

template <class Body>
double timed(ThreadTeam& team, const Body& body) {
  const double begin = now_us();
  team.run(body);
  return now_us() - begin;
}

enum class Way { read, triad, streaming };

void pass(Way way, float* numbers, std::size_t count) {
  if (way == Way::read) {
    kept.store(read_all(numbers, 3 * count), std::memory_order_relaxed);
    asm volatile("" : : : "memory");  // read again
    return;
  }
  triad(numbers, numbers + count, numbers + 2 * count, 2.0F, count,
        way == Way::triad ? Stores::plain : Stores::streaming);
}

// A cache is private where no other core, or only another thread of the same core, has it.
int cores_sharing(const CoreCache& cache) {
  int cores = 0;
  for (const std::string& range : split(cache.shared_by, ',')) {
    const std::size_t dash = range.find('-');
    cores += dash == std::string::npos
                 ? 1
                 : std::atoi(range.c_str() + dash + 1) - std::atoi(range.c_str()) + 1;
  }
  return std::max(cores, 1);
}

}  // namespace

double flops_a_round(Arithmetic which, bool doubles) {
  double bytes = 16;
#if defined(__x86_64__)
  bytes = has_avx512() ? 64 : has_avx2() ? 32 : 16;
#endif
  const double operations =
      which == Arithmetic::multiply_adds ? 2.0 * chains : chains + chains_that_multiply;
  return operations * bytes / static_cast<double>(doubles ? sizeof(double) : sizeof(float));
}

double arithmetic(Arithmetic which, std::size_t rounds, bool doubles) {
#if defined(__x86_64__)
  if (has_avx512()) return chained_avx512(which, rounds, doubles);
  if (has_avx2()) return chained_avx2(which, rounds, doubles);
#endif
  return chained<16>(which, rounds, doubles);
}

float read_all(const float* numbers, std::size_t count) {
#if defined(__x86_64__)
  if (has_avx512()) return added_avx512(numbers, count);
  if (has_avx2()) return added_avx2(numbers, count);
#endif
  return added(numbers, count);
}

double peak_gflops(ThreadTeam& team, bool doubles, int samples) {
  double best = 0;
  for (const Arithmetic which : {Arithmetic::multiply_adds, Arithmetic::two_to_one_addition}) {
    std::size_t rounds = 1000;
    const auto time = [&] {
      return timed(team, [&](int) {
        kept.store(static_cast<float>(arithmetic(which, rounds, doubles)),
                   std::memory_order_relaxed);
      });
    };
    while (time() < sample_us && rounds < (std::size_t{1} << 40)) rounds *= 2;
    const double flops = flops_a_round(which, doubles) * static_cast<double>(rounds) * team.size();
    for (int sample = 0; sample < samples; ++sample) best = std::max(best, flops / time() / 1e3);
  }
  return best;
}

std::vector<Level> levels(const std::vector<CoreCache>& caches, int threads, int ranks_per_node,
                          int cores) {
  std::vector<Level> made;
  for (const CoreCache& cache : caches) {
    if (cache.bytes == 0) continue;
    const int sharing = cores_sharing(cache);
    const double of_node = static_cast<double>(cache.bytes) * std::max(1, cores / sharing);
    const double capacity = sharing <= 2 && cache.level < 3
                                ? static_cast<double>(cache.bytes) * threads
                                : of_node / ranks_per_node;
    made.push_back({fmt::format("L{}", cache.level), capacity, capacity / 2, {}, 0});
  }
  made.push_back({"memory", 0, Bandwidth::most_bytes, {}, 0});
  return made;
}

const Level& level_of(const std::vector<Level>& levels, double bytes) {
  for (const Level& level : levels) {
    if (level.capacity == 0 || bytes <= level.capacity) return level;
  }
  return levels.back();
}

// Each worker has three arrays of whole lines.
std::size_t Bandwidth::numbers_for(double bytes, int workers) {
  const double lines = std::min(bytes, most_bytes) / 3 / workers / 64;
  return std::max<std::size_t>(static_cast<std::size_t>(lines), 1) * 16;
}

void Bandwidth::sample(double bytes) {
  const std::size_t count = numbers_for(bytes, team_.size());
  const auto workers = static_cast<std::size_t>(team_.size());
  if (std::min(bytes, most_bytes) > room_) {
    room_ = std::min(bytes, most_bytes);
    ranks_.collectively([&] {
      memory_ = Buffer<float>();
      memory_ = Buffer<float>(3 * count * workers);
    });
    // The memory is touched first by those who will use it.
    team_.run([&](int worker) {
      std::fill_n(memory_.data() + static_cast<std::size_t>(worker) * 3 * count, 3 * count, 1.0F);
    });
  }
  Samples& samples = samples_[count];
  double best_us = 0;
  double best = 0;
  for (const Way way : {Way::read, Way::triad, Way::streaming}) {
    if (way == Way::streaming && !has_streaming_stores()) continue;
    const auto time = [&](std::size_t passes) {
      return timed(team_, [&](int worker) {
        float* const part = memory_.data() + static_cast<std::size_t>(worker) * 3 * count;
        for (std::size_t i = 0; i < passes; ++i) pass(way, part, count);
      });
    };
    time(1);
    const double one = ranks_.max(time(1));
    const auto passes = static_cast<std::size_t>(std::clamp(sample_us / one, 1.0, 1e6));
    ranks_.barrier();
    const double us = ranks_.max(time(passes)) / static_cast<double>(passes);
    const double rate = 12.0 * static_cast<double>(count * workers) * ranks_.size() / us;
    if (rate < best) continue;
    best = rate;
    best_us = us;
  }
  samples.us.push_back(best_us);
  samples.best = std::max(samples.best, best);
}

double Bandwidth::best_mb_per_s(double bytes) const {
  const auto found = samples_.find(numbers_for(bytes, team_.size()));
  return found == samples_.end() ? 0 : found->second.best;
}

Summary Bandwidth::pass_us(double bytes) const {
  const auto found = samples_.find(numbers_for(bytes, team_.size()));
  return found == samples_.end() ? Summary() : summarize(found->second.us);
}

}  // namespace ropewalk::bench
