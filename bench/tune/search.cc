#include "tune/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/statistics.hpp"

namespace ropewalk::bench {
namespace {

constexpr int halvings = 2;
constexpr std::size_t step = 64;  // Borders found by halving are whole cache lines, in bytes.

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const double at = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

// Returns twice the standard error of the median, for values that spread as a normal distribution:
// its interquartile range is 1.35 standard deviations, and the error of a median is 1.25 times that
// of a mean.
double noise_of(const std::vector<double>& values) {
  const double spread = (quantile(values, 0.75) - quantile(values, 0.25)) / 1.35;
  return 2 * 1.25 * spread / std::sqrt(static_cast<double>(values.size()));
}

std::vector<double> log_ratios(const std::vector<double>& times, const std::vector<double>& first) {
  std::vector<double> all;
  for (std::size_t round = 0; round < times.size(); ++round) {
    all.push_back(std::log(times[round] / first[round]));
  }
  return all;
}

SizeFound measured(std::size_t bytes, const Measure& measure) {
  const std::vector<Times> cases = measure(bytes);
  SizeFound found;
  found.bytes = bytes;
  const std::size_t ways = cases.front().size();
  const auto count = static_cast<double>(cases.size());
  for (const Times& times : cases) {
    found.us.emplace_back();
    for (const std::vector<double>& way : times) found.us.back().push_back(median(way));
  }
  for (std::size_t way = 0; way < ways; ++way) {
    double sum = 0;
    double squares = 0;
    for (const Times& times : cases) {
      const std::vector<double> ratios = log_ratios(times[way], times[0]);
      const double noise = noise_of(ratios);
      sum += median(ratios);
      squares += noise * noise;
    }
    found.ratio.push_back(std::exp(sum / count));
    found.noise.push_back(std::sqrt(squares) / count);
  }
  return found;
}

// Saving says what a change saves over all sizes and on average, as logarithms of times, and the
// noise of the average.
struct Saving {
  double all = 0;
  double each = 0;
  double noise = 0;
  bool pays() const {
    return each > -std::log1p(-least_gain) && each > noise;  // more than 3 % of the time
  }
};

// Both as shares of the time, so that the noise is less than what a change that pays saves.
void note(const Saving& saving, Finding& found) {
  const double left = std::exp(-saving.each);
  found.gain = 1 - left;
  found.noise = left * std::expm1(saving.noise);
}

class Sum {
 public:
  void add(double saved, double noise) {
    all_ += saved;
    squares_ += noise * noise;
    ++count_;
  }
  Saving saving() const {
    if (count_ == 0) return {};
    const auto count = static_cast<double>(count_);
    return {all_, all_ / count, std::sqrt(squares_) / count};
  }

 private:
  double all_ = 0;
  double squares_ = 0;
  int count_ = 0;
};

// Returns the index of the first size for which way 1 is taken by default.
std::size_t default_border(const Border& border) {
  const auto below = [&](std::size_t bytes) {
    return border.from_on ? bytes < border.standard : bytes <= border.standard;
  };
  return static_cast<std::size_t>(std::ranges::count_if(border.sizes, below));
}

// Returns what is saved by moving the border from index `from` to index `to`. A border that is
// moved up takes way 0 for more sizes.
Saving saving_of(const std::vector<SizeFound>& sizes, std::size_t from, std::size_t to) {
  Sum sum;
  for (std::size_t i = std::min(from, to); i < std::max(from, to); ++i) {
    const double slower = std::log(sizes[i].ratio[1]);  // by how much way 1 is slower than way 0
    sum.add(to > from ? slower : -slower, sizes[i].noise[1]);
  }
  return sum.saving();
}

// Returns the threshold between the sizes `below` and `above`. It measures the middle and keeps the
// half in which the border lies, `halvings` times, and adds what it measured to `sizes`.
std::size_t halved(const Border& border, std::size_t below, std::size_t above,
                   const Measure& measure, std::vector<SizeFound>& sizes) {
  for (int i = 0; i < halvings; ++i) {
    const std::size_t middle = (below + above) / 2 / step * step;
    if (middle <= below || middle >= above) break;
    sizes.push_back(measured(middle, measure));
    (sizes.back().ratio[1] > 1 ? below : above) = middle;
  }
  return border.from_on ? above : below;
}

}  // namespace

Finding find_border(const Border& border, const Measure& measure) {
  Finding found;
  found.value = border.standard;
  for (const std::size_t bytes : border.sizes) found.sizes.push_back(measured(bytes, measure));
  const std::size_t count = found.sizes.size();
  const std::size_t from = default_border(border);
  std::size_t best = from;
  Saving most;
  for (std::size_t to = 0; to <= count; ++to) {
    const Saving saving = saving_of(found.sizes, from, to);
    if (!saving.pays() || saving.all <= most.all) continue;
    most = saving;
    best = to;
  }
  if (best == from) return found;
  note(most, found);
  const std::size_t first = border.sizes.front();
  const std::size_t last = border.sizes.back();
  if (best == 0) {
    found.value = border.from_on ? first : first / 2;
  } else if (best == count) {
    found.value = border.from_on ? 2 * last : last;
  } else {
    found.value = halved(border, border.sizes[best - 1], border.sizes[best], measure, found.sizes);
  }
  found.value = std::clamp(found.value, border.least, border.most);
  return found;
}

Finding find_value(const std::vector<std::size_t>& values, const std::vector<std::size_t>& sizes,
                   const Measure& measure) {
  Finding found;
  found.value = values.front();
  for (const std::size_t bytes : sizes) found.sizes.push_back(measured(bytes, measure));
  Saving most;
  for (std::size_t way = 1; way < values.size(); ++way) {
    Sum sum;
    for (const SizeFound& size : found.sizes) sum.add(-std::log(size.ratio[way]), size.noise[way]);
    const Saving saving = sum.saving();
    if (!saving.pays() || saving.all <= most.all) continue;
    most = saving;
    found.value = values[way];
  }
  note(most, found);
  return found;
}

std::vector<std::size_t> around(std::size_t first, std::size_t last, int down, int up,
                                std::size_t least, std::size_t most) {
  std::vector<std::size_t> all;
  std::size_t size = std::clamp(first, std::max<std::size_t>(least, 1), most);
  for (; down > 0 && size / 2 >= std::max<std::size_t>(least, 1); --down) size /= 2;
  for (; size <= most; size *= 2) {
    all.push_back(size);
    if (size >= last && up-- <= 0) break;
  }
  return all;
}

}  // namespace ropewalk::bench
