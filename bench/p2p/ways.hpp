// The two ways of a message: through the plain MPI, and through a channel. With limit.hpp, the
// files of this bench that know src/.
#pragma once

#include <vector>

#include "mpi/mpi.hpp"
#include "p2p/exchange.hpp"
#include "ropewalk/channel.hpp"

namespace ropewalk::bench {

// MPI's own messages, on a communicator that nobody else uses. Its functions are called as OSU's
// benchmarks call them: no status is asked for.
class PlainMessages {
 public:
  PlainMessages();  // collective
  ~PlainMessages();
  PlainMessages(const PlainMessages&) = delete;
  PlainMessages& operator=(const PlainMessages&) = delete;

  void send(const std::byte* data, std::size_t bytes, int to);
  void receive(std::byte* data, std::size_t bytes, int from);
  void start_send(const std::byte* data, std::size_t bytes, int to);
  void start_receive(std::byte* data, std::size_t bytes, int from);
  void wait_all();
  // Returns when the other rank of the pair has called it, too; last of all on the one that leads,
  // so that the other is ready when the clock is started.
  void meet(const P2pRun& run);

 private:
  mpi::Comm comm_;
  std::vector<mpi::Request> requests_;
};

P2pSample time_plain(PlainMessages& plain, const P2pRun& run);
P2pSample time_channel(Channel& channel, PlainMessages& plain, const P2pRun& run);

}  // namespace ropewalk::bench
