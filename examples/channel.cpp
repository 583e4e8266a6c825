// All pairs of bodies, each rank holding some of them: blocks travel around a ring of ranks, and
// while one is on its way, the rank computes with the one before.
//
//   ropewalk run -n 4 -- build/release/examples/channel
#include <ropewalk/channel.hpp>
#include <ropewalk/process.hpp>

#include <cstdio>
#include <utility>
#include <vector>

constexpr std::size_t bodies = 1000;  // of a rank

// What stands for a body: integers so small that sums of their products are exact on any number of
// ranks.
double body(int rank, std::size_t i) { return rank % 8 + static_cast<double>(i % 8); }
double sum_of_bodies(int rank) {
  double sum = 0;
  for (std::size_t i = 0; i < bodies; ++i) sum += body(rank, i);
  return sum;
}

int main() {
  const ropewalk::Process process;  // starts MPI
  ropewalk::Channel channel(process.world());
  const int ranks = channel.size();
  const int next = (channel.rank() + 1) % ranks, previous = (channel.rank() + ranks - 1) % ranks;
  std::vector<double> own(bodies), visiting, arriving(bodies);
  for (std::size_t i = 0; i < bodies; ++i) own[i] = body(channel.rank(), i);
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
  double all = 0;
  for (int rank = 0; rank < ranks; ++rank) all += sum_of_bodies(rank);
  const double expected = sum_of_bodies(channel.rank()) * all;
  if (pairs != expected) std::printf("rank %d: %g, not %g\n", channel.rank(), pairs, expected);
  return pairs == expected ? 0 : 1;
}
