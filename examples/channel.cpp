// All pairs of bodies, each rank holding some of them: blocks travel around a ring of ranks, and
// while one is on its way, the rank computes with the one before.
//
//   ropewalk run -n 4 -- build/release/examples/channel
#include <ropewalk/channel.hpp>
#include <ropewalk/process.hpp>

#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

constexpr std::size_t bodies = 1000;  // of a rank

int main() {
  const ropewalk::Process process;  // starts MPI
  ropewalk::Channel channel(process.world());
  const int ranks = channel.size();
  const int next = (channel.rank() + 1) % ranks, previous = (channel.rank() + ranks - 1) % ranks;
  std::vector<double> own(bodies), visiting, arriving(bodies);
  std::iota(own.begin(), own.end(), channel.rank() * double{bodies});
  visiting = own;
  double pairs = 0;  // of products, in place of forces
  for (int step = 0; step < ranks; ++step) {
    const std::size_t bytes = bodies * sizeof(double);
    ropewalk::MessageRequest receive = channel.start_receive(arriving.data(), bytes, previous);
    ropewalk::MessageRequest send = channel.start_send(visiting.data(), bytes, next);
    for (double mine : own) {
      for (double other : visiting) pairs += mine * other;
    }
    send.wait(), receive.wait();
    std::swap(visiting, arriving);
  }
  // Sums of integers this small are exact.
  const double all = bodies * ranks, sum = all * (all - 1) / 2;
  const double expected = std::reduce(own.begin(), own.end()) * sum;
  if (pairs != expected) std::printf("rank %d: %g, not %g\n", channel.rank(), pairs, expected);
  return pairs == expected ? 0 : 1;
}
