// Announced time, and rounds by the time that is left; see budget.hpp.
#include "common/budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace ropewalk::bench {
namespace {

constexpr double us_per_second = 1e6;
constexpr double calibration_rounds = 2;

double seconds_of(const CommonOptions& options) {
  if (options.time_seconds > 0) return options.time_seconds;
  return options.rounds > 0 ? 0 : CommonOptions::default_seconds;
}

}  // namespace

Expected sampling(double columns, int rounds, double sample_us, double call_us) {
  const auto part = [&](int times, double share) {
    return columns * (times + calibration_rounds) *
           (std::max(share * sample_us, call_us) + call_us);
  };
  return {part(rounds, 1),
          part(std::min(rounds, Budget::least_rounds), Budget::least_share_of_sample)};
}

double least_samples(double columns) {
  return columns * (Budget::least_rounds + calibration_rounds);
}

Budget::Budget(const CommonOptions& options, const Ranks& ranks, const std::vector<Expected>& parts,
               Clock clock)
    : ranks_(ranks),
      clock_(std::move(clock)),
      seconds_(seconds_of(options)),
      begun_us_(clock_()),
      part_begun_us_(begun_us_) {
  // Ranks of unlike machines may expect unlike times, but all have to agree on the shares.
  for (const Expected& part : parts) {
    parts_.push_back({ranks.max(part.all_us), ranks.max(part.least_us)});
  }
}

Expected Budget::from(std::size_t first) const {
  Expected sum;
  for (std::size_t i = first; i < parts_.size(); ++i) {
    sum.all_us += parts_[i].all_us;
    sum.least_us += parts_[i].least_us;
  }
  return sum;
}

// A part gets what it takes at least, and its share of what is left beyond that of all parts.
void Budget::begin() {
  part_begun_us_ = clock_();
  const double left = std::max(0.0, seconds_ * us_per_second - (part_begun_us_ - begun_us_));
  const Expected sum = from(next_);
  const Expected part = next_ < parts_.size() ? parts_[next_++] : Expected();
  const double beyond = sum.all_us - sum.least_us;
  const double share = beyond > 0 ? (part.all_us - part.least_us) / beyond : 1;
  const double mine = part.least_us + std::max(0.0, left - sum.least_us) * share;
  part_us_ = -ranks_.max(-mine);  // the least of all ranks
}

double Budget::left_us() const {
  if (seconds_ == 0) return std::numeric_limits<double>::infinity();
  return std::max(0.0, part_us_ - (clock_() - part_begun_us_));
}

double Budget::sample_us(double wanted, double samples) const {
  if (seconds_ == 0 || samples <= 0) return wanted;
  return std::clamp(part_us_ / samples, least_share_of_sample * wanted, wanted);
}

int Budget::rounds(int wanted, double round_us) const {
  if (seconds_ == 0) return wanted;
  const double fits = 1 + left_us() / std::max(round_us, 1.0);
  const double mine = std::min(static_cast<double>(wanted), fits);
  const int agreed = -static_cast<int>(ranks_.max(-mine));  // the fewest of all ranks
  return std::min(wanted, std::max(agreed, least_rounds));
}

double Budget::announced_seconds() const {
  const Expected sum = from(0);
  const double all = sum.all_us / us_per_second;
  return seconds_ == 0 ? all : std::clamp(seconds_, sum.least_us / us_per_second, all);
}

std::string Budget::text() const {
  const double announced = announced_seconds();
  const std::string about = duration_text(announced);
  if (seconds_ == 0) return fmt::format("about {} (no limit: --rounds without --time)", about);
  if (announced == seconds_) {
    return fmt::format("about {}, with as many rounds as fit (--time)", about);
  }
  const std::string limit = duration_text(seconds_);
  if (announced < seconds_) return fmt::format("about {} (limit {}: --time)", about, limit);
  return fmt::format("about {}, since no case has fewer than {} rounds (--time asks for {})", about,
                     least_rounds, limit);
}

}  // namespace ropewalk::bench
