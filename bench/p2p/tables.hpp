// Results of messages between two ranks as tables and as rows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "p2p/measure.hpp"

namespace ropewalk::bench {

struct P2pContext {
  int ranks = 0;
  std::string mpi;
  std::map<std::string, BackingReport> backings;

  int pairs() const { return ranks / 2; }
};

double ratio(const P2pResult& result);  // plain MPI's time over ropewalk's
// Returns the bandwidth of all pairs together, in both directions where bytes go both ways at once.
double p2p_mb_per_s(const P2pContext& context, const P2pResult& result, double us);
double messages_per_s(const P2pContext& context, const P2pResult& result, double us);

// The fastest of the forced mechanisms and the choice.
struct BestMechanism {
  Mechanism mechanism = Mechanism::none;
  double us = 0;
};
BestMechanism best_mechanism(const P2pResult& result);

// Returns one for the choice, and one for each forced mechanism.
std::vector<Json> rows(const P2pContext& context, const P2pResult& result);
// Results of one mode, one kind of memory and of buffers, by size.
std::string table(const P2pContext& context, const std::vector<P2pResult>& results);
// Geometric mean of the ratios, by mode; and how far the choice was from the best mechanism.
std::string summary(const std::vector<P2pResult>& results);

}  // namespace ropewalk::bench
