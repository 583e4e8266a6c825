// Rounds by the time that is left; see budget.hpp.
#include "common/budget.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/report.hpp"
#include "common/team.hpp"

namespace ropewalk::bench {
namespace {

constexpr double us_per_second = 1e6;

double seconds_of(const CommonOptions& options) {
  if (options.time_seconds > 0) return options.time_seconds;
  return options.rounds > 0 ? 0 : CommonOptions::default_seconds;
}

}  // namespace

Budget::Budget(const CommonOptions& options, const Ranks& ranks, int parts)
    : ranks_(ranks),
      seconds_(seconds_of(options)),
      begun_us_(now_us()),
      part_begun_us_(begun_us_),
      parts_left_(parts) {}

void Budget::begin() {
  part_begun_us_ = now_us();
  const double left = seconds_ * us_per_second - (part_begun_us_ - begun_us_);
  part_us_ = std::max(0.0, left) / std::max(1, parts_left_);
  --parts_left_;
}

int Budget::rounds(int wanted, double round_us) const {
  if (seconds_ == 0) return wanted;
  const double left = part_us_ - (now_us() - part_begun_us_);
  const double fits = 1 + std::max(0.0, left) / std::max(round_us, 1.0);
  const double mine = std::min(static_cast<double>(wanted), fits);
  const int agreed = -static_cast<int>(ranks_.max(-mine));  // the fewest of all ranks
  return std::min(wanted, std::max(agreed, least_rounds));
}

std::string Budget::text() const {
  if (seconds_ == 0) return "no limit (--rounds)";
  return fmt::format("up to {} (--time)", duration_text(seconds_));
}

}  // namespace ropewalk::bench
