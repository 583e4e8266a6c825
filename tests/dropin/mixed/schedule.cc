#include "schedule.hpp"

#include <algorithm>
#include <cstdio>

namespace mixed {

void Schedule::add(double time, Ranks ranks, std::string text, std::function<void()> run) {
  const bool own = (ranks >> world_rank & 1) != 0;
  steps_.push_back({time, ranks, std::move(text), own ? std::move(run) : nullptr});
}

double Schedule::add_on_each(double time, Ranks ranks, const std::string& text,
                             const std::function<void()>& run) {
  double last = time;
  for (int rank = 0; rank < world_size; ++rank) {
    if ((ranks >> rank & 1) == 0) continue;
    const double when = after(time);
    add(when, rank, text, run);
    last = std::max(last, when);
  }
  return last;
}

double Schedule::after(double time) {
  const double far = random.real();
  return time + 1e-6 + 0.5 * far * far * far;
}

void Schedule::sort() {
  std::stable_sort(steps_.begin(), steps_.end(),
                   [](const Step& a, const Step& b) { return a.time < b.time; });
}

void Schedule::execute(std::uint64_t seed) const {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!steps_[i].run) continue;
    enter(seed, i, steps_[i].text);
    steps_[i].run();
  }
}

std::uint64_t Schedule::hash() const {
  std::uint64_t value = 0;
  for (const Step& step : steps_) {
    for (const char c : step.text) value = mix(value + static_cast<unsigned char>(c));
    value = mix(value ^ step.ranks);
  }
  return value;
}

void Schedule::show() const {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    std::string ranks;
    for (int rank = 0; rank < world_size; ++rank) {
      if ((steps_[i].ranks >> rank & 1) != 0) ranks += " " + std::to_string(rank);
    }
    std::printf("%4zu  ranks%s: %s\n", i, ranks.c_str(), steps_[i].text.c_str());
  }
}

}  // namespace mixed
