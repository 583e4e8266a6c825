// How an Explanation (ropewalk/tuning.hpp) is put together: the alternatives in the order in which
// the code asks them, each with the row that it compares a size with.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "ropewalk/tuning.hpp"
#include "tuning/profile.hpp"

namespace ropewalk::tuning {

// An amount is a size that is compared, and what it is of: "the vector".
struct Amount {
  std::size_t bytes;
  std::string_view of;
};

// What beside the size decides, and the words for it where it does not hold.
struct Condition {
  bool holds = true;
  std::string otherwise;
  bool before_size = false;  // its words come first where the size does not fit either
};

struct Way {
  std::string_view path;
  std::string how;
  std::string detail = {};
  std::string_view algorithm = {};  // as in Alternative
};

class Reasons {
 public:
  explicit Reasons(const Values& values) : values_(values) {}

  // The way is taken up to the value of a row, below it, or from it on.
  void up_to(Id, const Amount&, Way, const Condition& = {});
  void below(Id, const Amount&, Way, const Condition& = {});
  void from(Id, const Amount&, Way, const Condition& = {});
  // The way is taken where the condition holds, whatever the size.
  void when(Condition, std::string why, Way);
  // The way is taken where nothing before was.
  void otherwise(Way way) { when({}, "nothing above is possible", std::move(way)); }

  const Values& values() const noexcept { return values_; }
  // The first way that is possible is taken.
  Explanation explain(const Facts&, const Profile&);

 private:
  void add(Id, const Amount&, bool size_fits, std::string_view fits, std::string_view fails, Way,
           const Condition&);

  const Values& values_;
  Explanation made_;
};

// Returns a row as it is under these facts.
Threshold threshold(const Row&, const Facts&, const Profile&);

// Fills `smaller` and `larger` of an explanation of `bytes`: asks `explain` for other sizes.
void find_changes(Explanation&, std::size_t bytes,
                  const std::function<Explanation(std::size_t)>& explain);

// Throws Error(argument) where a situation cannot be.
void check(const Situation&);

}  // namespace ropewalk::tuning
