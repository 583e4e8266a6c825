// Endpoints: several lanes from one rank into MPI, each a comm thread with a communicator of its
// own (Boyle et al. 2017, section III; Meadows et al. 2018).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
  automatic,   // whichever is fastest; all ranks measure it together
  sequential,  // the caller drives one direction after the other
  concurrent,  // the caller drives all messages at once
  threaded,    // each comm thread drives the messages of its lane
  // For a Halo; faces to ranks of other nodes are messages.
  direct,  // ranks of one node copy from memory to memory
  put      // ranks of one node write faces where they are read; nothing is copied (HaloBuffers)
};
RW_EXPORT const char* name(Strategy);
// Returns true for `direct` and `put`: neighbours on one node access each other's memory.
constexpr bool uses_shared_memory(Strategy strategy) noexcept {
  return strategy == Strategy::direct || strategy == Strategy::put;
}
RW_EXPORT Strategy strategy(const std::string& name);  // Error(argument) lists the names

struct EndpointOptions {
  // 1 to max_lanes; 0: ROPEWALK_LANES, else transport.lanes of a profile, else from the cores left
  // free.
  int lanes = 0;
  bool threads = true;  // false: no comm threads; the caller's own threads use the lanes
  bool pin = true;      // binds comm threads to cores of this rank's affinity mask, the last first
  // Larger messages may be split over the lanes; none: transport.split_bytes of the thresholds.
  std::optional<std::size_t> split_bytes = std::nullopt;
  // Larger parts of messages are sent in pieces of this size. 0: never; -1: ROPEWALK_PIECE_BYTES,
  // which `ropewalk run` sets for networks that need it, and never where it is not set.
  std::int64_t piece_bytes = -1;
};

struct Message {
  enum class Kind { send, receive };
  Kind kind;
  void* data;
  std::size_t bytes;
  int peer;       // rank in the communicator
  int tag;        // 0 to 4095; sender and receiver of a message name the same tag and lane
  int lane = -1;  // -1: chosen by size and tag, in the same way on both sides
  int step = 0;   // `sequential` completes a step before the next begins; the same on both sides
};

// Messages that are sent again and again; start, test and wait allocate nothing. Sender and
// receiver give a message the same tag, lane and step. Messages with the same peer, tag and lane
// arrive in the order in which they are listed. Each rank may choose its own strategy: the messages
// match whatever the others have chosen.
//
// One thread at a time uses a plan. test() and wait() throw the error that a message has met.
class RW_EXPORT MessagePlan {
 public:
  MessagePlan(MessagePlan&&) noexcept;
  MessagePlan& operator=(MessagePlan&&) noexcept;
  // Waits for messages that were started; while an exception unwinds the stack it cancels them.
  ~MessagePlan();

  // Throws Error(argument) when the plan is started already, for `threaded` without comm threads,
  // and for `direct` and `put`, which have no messages. `automatic` means `concurrent` here: only a
  // Halo can measure which strategy is fastest.
  void start(Strategy = Strategy::concurrent);
  bool test();  // true when all messages are complete; progresses those that the caller drives
  void wait();  // throws the error that a comm thread has met, too
  // For a rank that gives up: completes the sends (a peer receives them by its own plan, or drops
  // them in ~EndpointSet), then cancels the receives. Afterwards the endpoints of this rank can
  // only be destroyed: they refuse new exchanges, since messages of this one may still arrive.
  void cancel() noexcept;
  // Posts and completes the messages of one lane, on the calling thread. For endpoints without comm
  // threads: OpenMP threads, for instance, call it once for each lane, with their thread number
  // (Meadows et al. 2018). Not to be called between start and wait.
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

// Construction is collective over the communicator, and duplicates it once for each lane. It needs
// MPI_THREAD_MULTIPLE where comm threads or more than one lane are used. lanes, threads and
// split_bytes must be the same on all ranks; if the options of one rank are wrong, every rank gets
// the error.
//
// The duplicates and comm threads live until the set and all its plans are gone. Destruction of the
// last of them is collective: it returns when all ranks have come to it, and drops messages that
// cancelled plans have left in flight. When an exception makes a rank destroy its set early, every
// exchange of the others, also one under way, throws an Error(mpi) that names this rank. In a child
// of fork there are no comm threads: every call throws, and destruction does nothing.
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

  // The duplicated communicator of a lane, for MPI calls of the program's own.
  Communicator communicator(int lane) const;

  // Blocking calls on a lane, from any thread (as by OpenMP threads, each with the lane of its
  // number). Tags are 0 to 32765. A thread that waits yields its core to others.
  void send(int lane, const void* data, std::size_t bytes, int destination, int tag);
  void receive(int lane, void* data, std::size_t bytes, int source, int tag);

  // This is not collective. Of the messages with lane -1, those above split_bytes are split over
  // all lanes; the tag of any other decides its lane.
  MessagePlan plan(std::vector<Message> messages);

 private:
  friend struct transport::Access;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ropewalk
