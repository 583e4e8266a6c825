// Endpoints: several lanes from one rank into MPI, each a comm thread with a communicator of its
// own (Boyle et al. 2017, section III; Meadows et al. 2018).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "ropewalk/communicator.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/export.hpp"

namespace ropewalk {

// Who drives the messages of an exchange.
enum class Strategy {
  automatic,   // the fastest in a measurement all ranks share
  sequential,  // the caller, one direction after the other
  concurrent,  // the caller, all messages at once
  threaded     // the comm threads, each the messages of its lane
};
RW_EXPORT const char* name(Strategy);
RW_EXPORT Strategy strategy(const std::string& name);  // Error(argument) lists the names

struct EndpointOptions {
  int lanes = 0;        // 1 to max_lanes; 0: ROPEWALK_LANES, else from the cores left free
  bool threads = true;  // false: no comm threads; the caller's own threads use the lanes
  bool pin = true;      // comm threads on cores of this rank's affinity mask, from its end
  std::size_t split_bytes = std::size_t{1} << 20;  // larger messages may be split over the lanes
};

struct Message {
  enum class Kind { send, receive };
  Kind kind;
  void* data;
  std::size_t bytes;
  int peer;       // rank in the communicator
  int tag;        // 0 to 32767/8; send and receive of one message agree in tag and lane
  int lane = -1;  // -1: dealt by `deal`; both sides must deal alike (same tag, same lane)
  int step = 0;   // `sequential` completes a step before the next begins
};

// Messages that are sent again and again. start/test/wait allocate nothing.
class RW_EXPORT MessagePlan {
 public:
  MessagePlan(MessagePlan&&) noexcept;
  MessagePlan& operator=(MessagePlan&&) noexcept;
  ~MessagePlan();  // waits for what was started

  void start(Strategy = Strategy::concurrent);
  bool test();  // true when all is complete; progresses the caller's messages
  void wait();  // rethrows on the caller what a comm thread met
  std::size_t send_bytes() const noexcept;

 private:
  friend class EndpointSet;
  struct State;
  explicit MessagePlan(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};

// Collective over the communicator: construction duplicates it once a lane, destruction frees the
// duplicates. Needs MPI_THREAD_MULTIPLE where threads or more than one lane are used.
// Every check is made jointly: if one rank's options are bad, every rank gets the error.
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
  // Meadows).
  void send(int lane, const void* data, std::size_t bytes, int destination, int tag);
  void receive(int lane, void* data, std::size_t bytes, int source, int tag);

  // Local. Messages above split_bytes with lane -1 are split over all lanes, others dealt by tag.
  MessagePlan plan(std::vector<Message> messages);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ropewalk
