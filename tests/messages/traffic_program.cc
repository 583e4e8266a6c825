// traffic_program ROUNDS SEED [MECHANISM | devices]: random traffic on the ranks of a real MPI.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "messages/traffic.hpp"
#include "ropewalk/process.hpp"
#include "support/device.hpp"

namespace {

ropewalk::Mechanism mechanism_named(std::string_view text) {
  for (const auto each :
       {ropewalk::Mechanism::receiver, ropewalk::Mechanism::sender, ropewalk::Mechanism::both,
        ropewalk::Mechanism::pipeline, ropewalk::Mechanism::threaded}) {
    if (text == name(each)) return each;
  }
  return ropewalk::Mechanism::none;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::string_view how = argc > 3 ? argv[3] : "";
  const auto force = mechanism_named(how);
  const bool devices = how == "devices";
  try {
    const ropewalk::Process process;
    if (devices) ropewalk::test::use_device(ropewalk::Communicator::world().rank() % 2);
    const int threads = force == ropewalk::Mechanism::threaded ? 3 : 1;
    ropewalk::Channel channel(ropewalk::Communicator::world(),
                              {.force = force, .threads = threads});
    if (!channel.reason().empty()) {
      std::fprintf(stderr, "no shared memory: %s\n", channel.reason().c_str());
      return 1;
    }
    const auto problem = ropewalk::test::random_traffic(
        channel, {.seed = seed,
                  .rounds = rounds,
                  .longest = devices ? std::size_t{2'000'000} : std::size_t{200'000},
                  .devices = devices});
    if (problem.empty()) return 0;
    std::fprintf(stderr, "%s\n", problem.c_str());
  } catch (const ropewalk::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}
