#include "tuning/reasons.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "ropewalk/error.hpp"

namespace ropewalk::tuning {
namespace {

constexpr std::size_t largest = std::size_t{1} << 40;  // bytes; changes beyond are not looked for

std::string compared(const Amount& amount, std::string_view how, const Row& row,
                     std::size_t value) {
  return std::string(amount.of) + " (" + size_text(amount.bytes) + ") is " + std::string(how) +
         " " + std::string(row.name) + " (" + value_text(row, value) + ")";
}

bool same_way(const Explanation& one, const Explanation& other) {
  return one.path == other.path && one.how == other.how;
}

Change change_at(std::size_t bytes, const Explanation& there) {
  Change change{bytes, there.path, there.how, ""};
  for (const Alternative& one : there.alternatives) {
    if (one.taken) change.threshold = one.threshold;
  }
  return change;
}

// Returns the row of the first alternative that is possible for only one of the two; empty where no
// row decides about it.
std::optional<std::string> deciding_row(const Explanation& here, const Explanation& there) {
  for (std::size_t i = 0; i < here.alternatives.size() && i < there.alternatives.size(); ++i) {
    const Alternative& one = here.alternatives[i];
    if (one.possible != there.alternatives[i].possible) return one.threshold;
  }
  return std::nullopt;
}

}  // namespace

void Reasons::add(Id id, const Amount& amount, bool size_fits, std::string_view fits,
                  std::string_view fails, Way way, const Condition& condition) {
  const Row& one = row(id);
  const bool possible = size_fits && condition.holds;
  std::string why = compared(amount, size_fits ? fits : fails, one, values_[id]);
  if (!condition.holds && (size_fits || condition.before_size)) why = condition.otherwise;
  made_.alternatives.push_back({std::string(way.path), std::move(way.how), std::move(way.detail),
                                possible, false, std::move(why), std::string(one.name),
                                std::string(way.algorithm)});
}

void Reasons::up_to(Id id, const Amount& amount, Way way, const Condition& condition) {
  add(id, amount, amount.bytes <= values_[id], "at most", "more than", std::move(way), condition);
}

void Reasons::below(Id id, const Amount& amount, Way way, const Condition& condition) {
  add(id, amount, amount.bytes < values_[id], "less than", "at least", std::move(way), condition);
}

void Reasons::from(Id id, const Amount& amount, Way way, const Condition& condition) {
  add(id, amount, amount.bytes >= values_[id], "at least", "less than", std::move(way), condition);
}

void Reasons::when(Condition condition, std::string why, Way way) {
  made_.alternatives.push_back({std::string(way.path), std::move(way.how), std::move(way.detail),
                                condition.holds, false,
                                condition.holds ? std::move(why) : std::move(condition.otherwise),
                                "", std::string(way.algorithm)});
}

Explanation Reasons::explain(const Facts& facts, const Profile& profile) {
  const auto taken = std::ranges::find_if(made_.alternatives, &Alternative::possible);
  if (taken == made_.alternatives.end()) {
    throw Error(ErrorCode::internal, "explain: no way is possible");
  }
  taken->taken = true;
  made_.path = taken->path;
  made_.how = taken->how;
  made_.detail = taken->detail;
  made_.why = taken->why;
  for (auto later = std::next(taken); later != made_.alternatives.end(); ++later) {
    if (later->possible) later->why = "what is taken comes first";
  }
  for (const Alternative& one : made_.alternatives) {
    const Row* asked = find(one.threshold);
    if (asked == nullptr) continue;
    const auto known = std::ranges::find(made_.thresholds, one.threshold, &Threshold::name);
    if (known == made_.thresholds.end()) {
      made_.thresholds.push_back(threshold(*asked, facts, profile));
    }
  }
  return std::move(made_);
}

Threshold threshold(const Row& row, const Facts& facts, const Profile& profile) {
  const std::optional<Profile::Line>& line = profile.line(row.id);
  return {std::string(row.name),
          name(row.unit),
          line ? line->value : default_value(row, facts),
          line ? profile.file() + ":" + std::to_string(line->number) : "",
          std::string(row.text),
          row.least,
          row.most,
          std::string(row.serves),
          std::string(row.meaning),
          std::string(row.origin),
          std::string(row.machine)};
}

// Sizes a quarter apart are asked until one goes another way, then the border between the two is
// found by halves.
void find_changes(Explanation& here, std::size_t bytes,
                  const std::function<Explanation(std::size_t)>& explain) {
  const auto border = [&](std::size_t same, std::size_t other) {
    while (std::max(same, other) - std::min(same, other) > 1) {
      const std::size_t middle = std::midpoint(same, other);
      (same_way(explain(middle), here) ? same : other) = middle;
    }
    const Explanation there = explain(other);
    Change change = change_at(other, there);
    if (const auto row = deciding_row(here, there)) change.threshold = *row;
    return change;
  };
  std::size_t same = bytes;
  for (std::size_t next = bytes; next < largest && here.larger.empty(); same = next) {
    next += next / 4 + 1;
    if (!same_way(explain(next), here)) here.larger.push_back(border(same, next));
  }
  same = bytes;
  for (std::size_t next = bytes; next > 0 && here.smaller.empty(); same = next) {
    next -= next / 4 + 1;
    if (!same_way(explain(next), here)) here.smaller.push_back(border(same, next));
  }
}

void check(const Situation& situation) {
  const auto refuse = [](const char* what, int found, const char* expected) {
    throw Error(ErrorCode::argument,
                std::string(what) + ": found " + std::to_string(found) + ", expected " + expected);
  };
  if (situation.ranks < 1) refuse("ranks", situation.ranks, "1 or more on a node");
  if (situation.nodes < 1) refuse("nodes", situation.nodes, "1 or more");
  if (situation.domains < 1 || situation.domains > situation.ranks) {
    refuse("domains", situation.domains, "1 to the ranks of a node");
  }
}

}  // namespace ropewalk::tuning
