// Order statistics of samples; see statistics.hpp.
#include "common/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ropewalk::bench {
namespace {

double median_of_sorted(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[half];
  return 0.5 * (sorted[half - 1] + sorted[half]);
}

double standard_error(const std::vector<double>& samples, double mean) {
  const double n = static_cast<double>(samples.size());
  if (samples.size() < 2) return 0;
  double squares = 0;
  for (const double x : samples) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / (n * (n - 1)));
}

// How many samples from either end the 95 % interval of the median begins, counted from 1; 0 where
// there are too few. P(fewer than k samples lie below the median) is that of a fair coin.
std::size_t interval_rank(std::size_t n) {
  constexpr double tail = 0.025;
  constexpr std::size_t exact = 1000;  // 2^-1000 is still a number; beyond, the normal distribution
  constexpr double deviations = 1.96;
  if (n > exact) {
    const double samples = static_cast<double>(n);
    return static_cast<std::size_t>(0.5 * (samples - deviations * std::sqrt(samples)));
  }
  double term = std::pow(0.5, static_cast<double>(n));
  double sum = term;
  std::size_t rank = 0;
  while (sum <= tail) {
    ++rank;
    term *= static_cast<double>(n - rank + 1) / static_cast<double>(rank);
    sum += term;
  }
  return rank;
}

}  // namespace

Summary summarize(std::vector<double> samples) {
  Summary summary;
  if (samples.empty()) return summary;
  std::sort(samples.begin(), samples.end());
  const double n = static_cast<double>(samples.size());
  summary.n = samples.size();
  summary.median = median_of_sorted(samples);
  summary.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / n;
  summary.error = standard_error(samples, summary.mean);
  summary.min = samples.front();
  summary.max = samples.back();
  // The tolerance keeps 0.99 x 100 at rank 99 whatever the last bit of the product is.
  const auto rank = static_cast<std::size_t>(std::ceil(0.99 * n - 1e-9));
  summary.p99 = samples[std::max<std::size_t>(rank, 1) - 1];
  if (const std::size_t k = interval_rank(summary.n); k > 0) {
    summary.low95 = samples[k - 1];
    summary.high95 = samples[summary.n - k];
  }
  return summary;
}

double median(const std::vector<double>& samples) { return summarize(samples).median; }

double mb_per_s(double bytes, double microseconds) {
  return microseconds > 0 ? bytes / microseconds : 0;
}

Rate rate(double bytes, const Summary& t) {
  return {mb_per_s(bytes, t.median), mb_per_s(bytes * t.error, t.mean * t.mean),
          mb_per_s(bytes, t.max), mb_per_s(bytes, t.min)};
}

MeanRate mean_rate(double value, const Summary& t) {
  return {mb_per_s(value, t.mean), mb_per_s(value * t.error, t.mean * t.mean),
          mb_per_s(value, t.max), mb_per_s(value, t.min)};
}

}  // namespace ropewalk::bench
