// Endpoints: several lanes from one rank into MPI, each a comm thread with a communicator of its
// own (Boyle et al. 2017, section III; Meadows et al. 2018).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ropewalk/communicator.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/export.hpp"

namespace ropewalk {

namespace transport {
struct Access;
}

// Who drives the messages of an exchange.
enum class Strategy {
  automatic,   // the fastest in a measurement all ranks share
  sequential,  // the caller, one direction after the other
  concurrent,  // the caller, all messages at once
  threaded,    // the comm threads, each the messages of its lane
  direct,      // ranks of one node copy from memory to memory; no messages (Halo only)
  put          // ranks of one node write faces where they are read; nothing is copied (HaloBuffers)
};
RW_EXPORT const char* name(Strategy);
// Neighbours reach into each other's memory, and no messages are sent: `direct` and `put`.
constexpr bool uses_shared_memory(Strategy strategy) noexcept {
  return strategy == Strategy::direct || strategy == Strategy::put;
}
RW_EXPORT Strategy strategy(const std::string& name);  // Error(argument) lists the names

struct EndpointOptions {
  int lanes = 0;        // 1 to max_lanes; 0: ROPEWALK_LANES, else from the cores left free
  bool threads = true;  // false: no comm threads; the caller's own threads use the lanes
  bool pin = true;      // comm threads on cores of this rank's affinity mask, from its end
  std::size_t split_bytes = std::size_t{1} << 20;  // larger messages may be split over the lanes
  // Parts above it are sent in pieces of that size; 0: never, -1:
  // ROPEWALK_PIECE_BYTES, which `ropewalk run` sets for networks that need it, else never.
  std::int64_t piece_bytes = -1;
};

struct Message {
  enum class Kind { send, receive };
  Kind kind;
  void* data;
  std::size_t bytes;
  int peer;       // rank in the communicator
  int tag;        // 0 to 32767/8; send and receive of one message agree in tag and lane
  int lane = -1;  // -1: dealt by `deal`; both sides must deal alike (same tag, same lane)
  int step = 0;   // `sequential` completes a step before the next begins; alike on both sides
};

// Messages that are sent again and again. start/test/wait allocate nothing. Both sides of a message
// give it the same tag, lane and step; several messages of one peer, tag and lane come in the order
// they are listed. Every rank may pick its own strategy: messages meet all the same.
//
// One thread at a time uses a plan. An MPI error met on the way comes out of wait() or test().
class RW_EXPORT MessagePlan {
 public:
  MessagePlan(MessagePlan&&) noexcept;
  MessagePlan& operator=(MessagePlan&&) noexcept;
  // Waits for what was started; while an exception unwinds the stack it cancels that instead.
  ~MessagePlan();

  // Error(argument) when it is under way already, for `threaded` without comm threads, and for
  // `direct`, which has no messages.
  // `automatic` is `concurrent` here: it takes a Halo to measure.
  void start(Strategy = Strategy::concurrent);
  bool test();  // true when all is complete; progresses the caller's messages
  void wait();  // rethrows on the caller what a comm thread met
  // For a rank that gives up: completes what was sent (a peer takes it by its own plan, or drops it
  // in ~EndpointSet), then cancels the receives. Afterwards this rank's endpoints refuse new
  // exchanges, since messages of this one may still come; destroying them is all that is left.
  void cancel() noexcept;
  // The messages of one lane, posted and completed by the calling thread: for endpoints without
  // comm threads, called with each lane once, as by OpenMP threads (lane = thread number, Meadows
  // 2018). Not between start and wait.
  void exchange_lane(int lane);
  int lanes() const noexcept;  // of the endpoints
  std::size_t send_bytes() const noexcept;

 private:
  friend class EndpointSet;
  friend struct transport::Access;
  struct State;
  explicit MessagePlan(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};

// Collective over the communicator: construction duplicates it once a lane, destruction frees the
// duplicates. Needs MPI_THREAD_MULTIPLE where threads or more than one lane are used.
// Every check is made jointly: if one rank's options are bad, every rank gets the error. lanes,
// threads and split_bytes must be the same on all ranks.
//
// The duplicates and threads live until the set and all its plans are gone. Destruction of the last
// of them is collective: it returns when all ranks have come to it, and drops what cancelled plans
// left in flight. Where an exception takes a rank through it, the others are told: whoever waits in
// an exchange, and every later one, gets Error(mpi) that names that rank. A child of fork has no
// comm threads: everything there throws, destruction is harmless.
class RW_EXPORT EndpointSet {
 public:
  static constexpr int max_lanes = 64;

  explicit EndpointSet(Communicator, const EndpointOptions& = {});
  ~EndpointSet();
  EndpointSet(const EndpointSet&) = delete;
  EndpointSet& operator=(const EndpointSet&) = delete;

  int lanes() const noexcept;
  int rank() const noexcept;
  int size() const noexcept;
  bool has_threads() const noexcept;

  // The duplicate of a lane, for calls of one's own.
  Communicator communicator(int lane) const;

  // Blocking calls on a lane, from any thread of the caller (lane = OpenMP thread number, as
  // Meadows). Tags 0 to 32765. They give way to other threads while they wait.
  void send(int lane, const void* data, std::size_t bytes, int destination, int tag);
  void receive(int lane, void* data, std::size_t bytes, int source, int tag);

  // Local. Messages above split_bytes with lane -1 are split over all lanes, others dealt by tag.
  MessagePlan plan(std::vector<Message> messages);

 private:
  friend struct transport::Access;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ropewalk
