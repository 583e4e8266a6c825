// traffic_program ROUNDS SEED [MECHANISM]: random traffic on the ranks of a real MPI.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "messages/traffic.hpp"
#include "ropewalk/process.hpp"

namespace {

ropewalk::Mechanism mechanism_named(std::string_view text) {
  for (const auto each : {ropewalk::Mechanism::receiver, ropewalk::Mechanism::sender,
                          ropewalk::Mechanism::both, ropewalk::Mechanism::pipeline}) {
    if (text == name(each)) return each;
  }
  return ropewalk::Mechanism::none;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const auto force = mechanism_named(argc > 3 ? argv[3] : "");
  try {
    const ropewalk::Process process;
    ropewalk::Channel channel(ropewalk::Communicator::world(), {.force = force});
    if (!channel.reason().empty()) {
      std::fprintf(stderr, "no shared memory: %s\n", channel.reason().c_str());
      return 1;
    }
    const auto problem = ropewalk::test::random_traffic(channel, {.seed = seed, .rounds = rounds});
    if (problem.empty()) return 0;
    std::fprintf(stderr, "%s\n", problem.c_str());
  } catch (const ropewalk::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}
