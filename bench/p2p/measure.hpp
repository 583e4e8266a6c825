// Interleaved, verified samples of messages between the two ranks of each pair.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/budget.hpp"
#include "common/pages.hpp"
#include "common/ranks.hpp"
#include "p2p/exchange.hpp"
#include "p2p/limit.hpp"
#include "p2p/options.hpp"
#include "p2p/ways.hpp"

namespace ropewalk::bench {

// What was measured of one way of the messages.
struct P2pTimes {
  std::vector<double> us;  // of a message, one value a round, of the slowest rank
  int iterations = 1;      // ping-pongs or windows a sample
};

struct P2pResult : P2pCase {
  P2pResult() = default;
  explicit P2pResult(const P2pCase& one) : P2pCase(one) {}

  int window = 1;
  P2pTimes plain;
  P2pTimes choice;                       // ropewalk's own
  std::map<Mechanism, P2pTimes> forced;  // those that could carry these messages
  double limit_us = 0;                   // 0: none
  Mechanism path = Mechanism::none;      // what ropewalk has chosen
  std::string wrong;                     // the first wrong byte of any rank; empty: all right
};

class P2pMeasurement {
 public:
  // Collective. Throws Error(argument) for an odd number of ranks, Error(memory) where buffers do
  // not fit.
  P2pMeasurement(const P2pOptions& options, const Ranks& ranks);
  ~P2pMeasurement();

  // Collective; to be called for each of cases(), in their order.
  P2pResult measure(const P2pCase& one);
  const Budget& budget() const noexcept { return *budget_; }
  int rounds() const noexcept { return rounds_; }
  const std::string& reason() const noexcept { return choice_.reason(); }
  bool is_limited() const noexcept { return limited_; }
  const std::map<std::string, BackingReport>& backings() const noexcept { return backings_; }

 private:
  struct Column;

  void make_private(std::size_t bytes);
  Expected expected(const P2pCase& one) const;
  double full_sample_us() const;
  P2pRun run_of(const P2pCase& one, bool apart) const;
  P2pSample time_copies(const P2pRun& run, kernels::Stores stores);
  std::vector<Column> columns(const P2pCase& one);
  void add_limits(const P2pCase& one, std::vector<Column>& all);
  Mechanism last_of(const Channel& channel) const;
  bool can_carry(Column& column, const P2pCase& one);
  std::string checked(Column& column, const P2pCase& one);
  void calibrate(Column& column, const P2pRun& run, double wanted_us);
  double sample(Column& column, P2pRun run, std::string& wrong);
  std::string all_rounds(std::vector<Column>& all, const P2pCase& one);
  void keep(const std::vector<Column>& all, P2pResult& result) const;

  const P2pOptions& options_;
  const Ranks& ranks_;
  int rounds_;
  PlainMessages plain_;
  Channel choice_;
  std::map<Mechanism, Channel> forced_;
  std::optional<P2pLimit> limit_;  // and the buffers in the arena
  bool limited_ = false;           // on all ranks
  PageBlock private_send_;
  PageBlock private_receive_;
  std::map<std::string, BackingReport> backings_;
  std::optional<Budget> budget_;
  std::uint64_t serial_ = 0;
};

}  // namespace ropewalk::bench
