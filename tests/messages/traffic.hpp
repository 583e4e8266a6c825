// Random traffic: messages that every rank derives from one number, sent and received in random
// orders, checked against the rules of MPI's matching.
#pragma once

#include <cstdint>
#include <string>

#include "ropewalk/channel.hpp"

namespace ropewalk::test {

struct TrafficOptions {
  std::uint64_t seed = 1;
  int rounds = 10;
  std::size_t longest = 200'000;  // bytes
  bool devices = false;           // half of the buffers are memory of a device of the fake driver
};

// Collective. What went wrong on this rank, empty where all is well.
std::string random_traffic(Channel&, const TrafficOptions&);

}  // namespace ropewalk::test
