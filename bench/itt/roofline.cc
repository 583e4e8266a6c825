// The loops of roofline.hpp. This file is compiled with -O3 and contracted multiply-adds, each loop
// once for every instruction set.
#include "itt/roofline.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/team.hpp"
#include "memory/triad.hpp"

namespace ropewalk::bench {
namespace {

// Two multiply-adds a cycle, four cycles each: eight chains keep both units busy, and some more
// even where the latency is longer.
constexpr std::size_t chains = 12;

template <class Real, std::size_t bytes>
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
    for (Vector& sum : sums) sum = sum * factor + term;
    asm volatile("" : "+x"(factor));  // not to be known from one round to the next
  }
  double all = 0;
  for (const Vector& sum : sums) all += static_cast<double>(sum[0]);
  return all;
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
#define ROPEWALK_AVX512 [[gnu::target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")]]
#define ROPEWALK_AVX2 [[gnu::target("avx2,fma")]]
ROPEWALK_AVX512 double chained_avx512(std::size_t n, bool doubles) {
  return doubles ? chained<double, 64>(n) : chained<float, 64>(n);
}
ROPEWALK_AVX2 double chained_avx2(std::size_t n, bool doubles) {
  return doubles ? chained<double, 32>(n) : chained<float, 32>(n);
}
ROPEWALK_AVX512 float added_avx512(const float* x, std::size_t n) { return added(x, n); }
ROPEWALK_AVX2 float added_avx2(const float* x, std::size_t n) { return added(x, n); }
bool has_avx512() {
  return __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

constexpr double sample_us = 3000;
constexpr int samples = 5;

// The least time of a few samples of body(repetitions) on all threads, and the repetitions.
template <class Body>
std::pair<double, std::size_t> least_time(ThreadTeam& team, const Body& body) {
  std::size_t repetitions = 1;
  double best = 0;
  for (int sample = 0; sample < samples;) {
    const double begin = now_us();
    team.run([&](int worker) { body(worker, repetitions); });
    const double time = now_us() - begin;
    if (sample == 0 && time < sample_us && repetitions < (std::size_t{1} << 40)) {
      repetitions *= 2;
      continue;
    }
    best = sample == 0 ? time : std::min(best, time);
    ++sample;
  }
  return {best, repetitions};
}

std::atomic<float> kept{0};  // results that nobody needs

}  // namespace

double flops_a_round(bool doubles) {
  double bytes = 16;
#if defined(__x86_64__)
  bytes = has_avx512() ? 64 : has_avx2() ? 32 : 16;
#endif
  return 2.0 * chains * bytes / (doubles ? sizeof(double) : sizeof(float));
}

double multiply_adds(std::size_t rounds, bool doubles) {
#if defined(__x86_64__)
  if (has_avx512()) return chained_avx512(rounds, doubles);
  if (has_avx2()) return chained_avx2(rounds, doubles);
#endif
  return doubles ? chained<double, 16>(rounds) : chained<float, 16>(rounds);
}

float read_all(const float* numbers, std::size_t count) {
#if defined(__x86_64__)
  if (has_avx512()) return added_avx512(numbers, count);
  if (has_avx2()) return added_avx2(numbers, count);
#endif
  return added(numbers, count);
}

double peak_gflops(ThreadTeam& team, bool doubles) {
  const auto [time, repetitions] = least_time(team, [&](int, std::size_t count) {
    kept.store(static_cast<float>(multiply_adds(1000 * count, doubles)), std::memory_order_relaxed);
  });
  return flops_a_round(doubles) * 1000 * static_cast<double>(repetitions) * team.size() / time /
         1e3;
}

double bandwidth_mb_per_s(ThreadTeam& team, std::size_t bytes) {
  const auto workers = static_cast<std::size_t>(team.size());
  // Three arrays of whole lines a worker, each begun by its worker.
  const std::size_t count = std::max<std::size_t>(bytes / 3 / workers / 64, 1) * 16;
  Buffer<float> numbers(3 * count * workers);
  const auto part = [&](int worker) {
    return numbers.data() + static_cast<std::size_t>(worker) * 3 * count;
  };
  team.run([&](int worker) { std::fill_n(part(worker), 3 * count, 1.0F); });
  const auto rate = [&](const std::pair<double, std::size_t>& best) {
    return static_cast<double>(numbers.bytes()) * static_cast<double>(best.second) / best.first;
  };
  const double reading = rate(least_time(team, [&](int worker, std::size_t passes) {
    for (std::size_t pass = 0; pass < passes; ++pass) {
      kept.store(read_all(part(worker), 3 * count), std::memory_order_relaxed);
      asm volatile("" : : : "memory");  // read again
    }
  }));
  const double both = rate(least_time(team, [&](int worker, std::size_t passes) {
    float* const z = part(worker);
    for (std::size_t pass = 0; pass < passes; ++pass) {
      triad(z, z + count, z + 2 * count, 2.0F, count, Stores::plain);
    }
  }));
  return std::max(reading, both);
}

}  // namespace ropewalk::bench
