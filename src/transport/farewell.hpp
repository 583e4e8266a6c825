// The farewell: the exchange at the end of an endpoint set, after which no message is in flight.
#pragma once

#include <span>
#include <vector>

#include "mpi/mpi.hpp"
#include "os/waiting.hpp"
#include "transport/part.hpp"

namespace ropewalk::transport {

// Notices, to all other ranks on lane 0: `leaving` of one that an exception takes away, `deserting`
// of one that has given up its farewell. They differ in their number of bytes.
enum class FarewellNotice : std::size_t { leaving = 0, deserting = 1 };
void tell_others(mpi::Comm, FarewellNotice);

// A dissemination barrier on lane 0 (Hensgen, Finkel and Manber 1988: log2 p rounds of empty
// messages), made of requests so that this rank can drain its lanes meanwhile: a peer may be stuck
// in the send of a message whose receive was cancelled here.
class Farewell {
 public:
  explicit Farewell(std::span<const mpi::Comm> lanes);
  // Returns true when every rank has come here, false when hopeless() says that one will not, here
  // or to one that was here. Throws what MPI throws.
  template <class Hopeless>
  bool wait(Hopeless hopeless) {
    os::Waiting wait(os::wait_for_messages);
    if (!receives_.empty()) send_round();
    while (!wait.poll([&] { return advance() || (drain(), false); })) {
      if (wait.check_due() && hopeless(told_)) return give_up(), false;
      wait.pause();
    }
    drain();  // notices of others that leave
    return !deserted_;
  }

 private:
  bool advance();
  void send_round();
  void drain();
  void give_up() noexcept;

  std::span<const mpi::Comm> lanes_;
  int rank_;
  int size_;
  std::size_t round_ = 0;
  std::vector<mpi::Request> receives_;  // posted first of all: draining must not take them
  std::vector<mpi::Request> sends_;
  std::vector<std::byte> dropped_;
  bool told_ = false;      // by a rank that an exception takes away
  bool deserted_ = false;  // by one that has waited for long enough
};

}  // namespace ropewalk::transport
