// Results of attaching memory as tables and as rows.
#pragma once

#include <string>
#include <vector>

#include "attach/steps.hpp"
#include "common/ranks.hpp"
#include "common/table.hpp"
#include "ropewalk/registration.hpp"
#include "tune/copies.hpp"

namespace ropewalk::bench {

// One mechanism and size, with the cache or without.
struct AttachResult {
  std::string mechanism;
  std::size_t bytes = 0;
  bool cached = false;
  std::vector<AttachTimes> rounds;  // of the slowest rank
  bool verified = true;
};
double median_total(const AttachResult& result);
// Returns the share of the time that is not the copy, in percent: all that registration costs.
double registration_percent(const AttachResult& result);

struct ReplayResult {
  std::string trace;
  Eviction eviction = Eviction::fifo;
  std::size_t capacity = 0;
  std::size_t requests = 0;
  RegistrationCounts counts;
};

// `common`: what all rows of this run begin with.
Json row(Json common, const AttachResult& result);
Json row(Json common, const TuneCost& cost, double alone_us);
Json row(Json common, const ReplayResult& result);

// `xpmem_reason`: why there are no steps of xpmem.
std::string steps_table(const std::vector<AttachResult>& results, const std::string& xpmem_reason);
std::string contention_table(const std::vector<TuneCost>& costs);
std::string replay_table(const std::vector<ReplayResult>& results);
// Returns the time of a copy that one rank makes alone, for as many bytes.
double alone_us(const std::vector<TuneCost>& costs, const TuneCost& cost);

}  // namespace ropewalk::bench
