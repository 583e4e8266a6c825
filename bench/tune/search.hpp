// Which value of a threshold is fastest, from times that somebody else measures: arithmetic alone,
// so that a test can prove it with times that it makes up.
//
// Machines are noisy. Ways are therefore compared round by round, by the median of their ratios;
// and the default stays unless another value saves more than the noise, and more than 3 %.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace ropewalk::bench {

// Microseconds of a call: [way][round]. Times of one round were measured right after each other.
using Times = std::vector<std::vector<double>>;
// What is measured for one size: the times of each case, as of several collectives that ask the
// same threshold.
using Measure = std::function<std::vector<Times>(std::size_t bytes)>;

// A size of a search. `ratio`: the time of the ways over that of the first one, its mean over the
// cases (geometric), one for each way.
struct SizeFound {
  std::size_t bytes = 0;
  std::vector<std::vector<double>> us;  // medians: [case][way]
  std::vector<double> ratio;
  std::vector<double> noise;  // of the logarithm of `ratio`, for each way
};

struct Finding {
  std::size_t value = 0;
  // The share of the time that `value` saves against the default, over the sizes that it changes,
  // and what that share may be wrong by. 0 where the default stays.
  double gain = 0;
  double noise = 0;
  std::vector<SizeFound> sizes;  // in the order in which they were measured

  bool changes(std::size_t standard) const { return value != standard; }
};

inline constexpr double least_gain = 0.03;  // below, the default stays

// A threshold between two ways: way 0 is taken below it, way 1 above.
struct Border {
  std::size_t standard = 0;  // the default
  std::size_t least = 0;
  std::size_t most = 0;
  bool from_on = false;            // way 1 is taken at the threshold, too; otherwise way 0
  std::vector<std::size_t> sizes;  // to measure first; ascending
};
// Where the border is best: between two sizes, then twice by halves. Not farther than the sizes
// reach: half the first one, twice the last one.
Finding find_border(const Border&, const Measure&);

// The fastest of several values; way i is values[i], and values[0] is the default.
Finding find_value(const std::vector<std::size_t>& values, const std::vector<std::size_t>& sizes,
                   const Measure&);

// Sizes by factors of two: from `first`, and `down` of them below it, to the first one that is at
// least `last`, and `up` of them above it; within the bounds.
std::vector<std::size_t> around(std::size_t first, std::size_t last, int down, int up,
                                std::size_t least, std::size_t most);

}  // namespace ropewalk::bench
