// What is said about repeated measurements: order statistics first, mean and error beside them.
#pragma once

#include <cstddef>
#include <vector>

namespace ropewalk::bench {

struct Summary {
  double median = 0;
  double mean = 0;
  double error = 0;  // standard error of the mean, sqrt(sum (x-mean)^2 / (n (n-1))), as Grid prints
  double min = 0;
  double max = 0;
  double p99 = 0;  // nearest rank: the smallest value that 99 % of the samples do not exceed
  // 95 % interval of the median from order statistics, whatever the distribution: the narrowest
  // pair of samples, as many from either end, between which the median lies with that probability
  // by the binomial distribution. Zeros below 6 samples, of which no pair is wide enough.
  double low95 = 0;
  double high95 = 0;
  std::size_t n = 0;
};

// All members are zero where there are no samples.
Summary summarize(std::vector<double> samples);
double median(const std::vector<double>& samples);  // the same as that of the summary

// bytes / microseconds, which is MB/s with 1 MB = 10^6 bytes as in Grid and the paper. For time 0
// it is 0.
double mb_per_s(double bytes, double microseconds);

// Rates of a summary of times, as Grid's Benchmark_ITT makes them: X/mean, X err/mean^2, X/max,
// X/min; `median` is ours, and the one that the tables show.
struct Rate {
  double median = 0;
  double error = 0;
  double min = 0;
  double max = 0;
};
Rate rate(double bytes, const Summary& microseconds);

// The same with the mean, as Grid prints it.
struct MeanRate {
  double mean = 0;
  double error = 0;
  double min = 0;
  double max = 0;
};
MeanRate mean_rate(double value, const Summary& microseconds);

}  // namespace ropewalk::bench
