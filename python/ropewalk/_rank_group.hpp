// The ranks of one process group of PyTorch's: their collectives and messages, by address. What a
// tensor is, and which call torch wants, is known to ropewalk/torch; here nothing is checked that
// the library checks.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "_completion.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/store_communicator.hpp"

namespace ropewalk::python {

// Messages under way, of a channel that takes one call at a time. A thread looks after those that
// nobody waits for.
class Messenger {
 public:
  explicit Messenger(Communicator on);
  ~Messenger();
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;

  struct Message {
    Completion completion;
    MessageRequest request;
    int source = any_source;   // of a message that is complete
    PyObject* kept = nullptr;  // what holds the memory; given back with the GIL, see forget()
  };
  using MessagePointer = std::shared_ptr<Message>;

  // `keep` is a new reference.
  MessagePointer send(const void* data, std::size_t bytes, int to, int tag, PyObject* keep);
  MessagePointer receive(void* data, std::size_t bytes, int from, int tag, PyObject* keep);
  // Without the GIL. False where the message is not complete after so many seconds.
  bool wait(Message&, double seconds);
  bool test(Message&);
  // Gives the memory of complete messages back; with the GIL.
  void forget();

 private:
  template <class Start>
  MessagePointer begin(PyObject* keep, Start start);
  bool look(Message&);
  static void withdraw(Message&) noexcept;
  void progress();

  int process_;  // that has made it: a child of fork has no thread
  Channel channel_;
  std::mutex mutex_;  // of the channel, and of what follows
  std::condition_variable changed_;
  std::list<MessagePointer> under_way_;
  std::list<MessagePointer> complete_;
  bool ending_ = false;
  std::thread thread_;
};

class RankGroup {
 public:
  // Collective. One of the two is given: a store that only this group uses, or a communicator.
  RankGroup(std::shared_ptr<KeyValueStore> store, int rank, int size,
            std::optional<std::uintptr_t> handle, int timeout_s);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  struct Started {
    Completion completion;
    PyObject* kept = nullptr;  // as in a message
  };
  using StartedPointer = std::shared_ptr<Started>;
  using Call = std::function<void(Collectives&)>;

  Collectives& collectives() const noexcept { return *collectives_; }
  Messenger& messenger() const noexcept { return *messenger_; }
  // Without the GIL: makes the call here, behind those that were started.
  void run(const Call&);
  // Has a thread of the group make it; `keep` is a new reference.
  StartedPointer start(Call, PyObject* keep);
  void forget();  // see Messenger
  // Instead of a call that this rank cannot make: that of the others becomes an error.
  void refuse() noexcept;
  std::uint64_t calls() const noexcept { return calls_.load(std::memory_order_relaxed); }
  // Why no call can be made any more; empty where calls can.
  std::string broken();
  // Ends it without waiting for the others; what is under way ends first.
  void close(bool by_error);
  bool closed() const noexcept { return collectives_ == nullptr; }

 private:
  void check_whole();
  void make(Started&, const Call&, Collectives&) noexcept;
  void note(const Error&);

  int process_;
  std::unique_ptr<StoreCommunicator> own_;
  std::unique_ptr<Collectives> collectives_;
  std::unique_ptr<Messenger> messenger_;
  std::atomic<std::uint64_t> calls_{0};  // made or started
  std::mutex calling_;                   // the collectives take calls of one thread at a time
  std::mutex mutex_;                     // of what follows
  std::string broken_;
  std::list<StartedPointer> kept_;
  std::list<CollectiveRequest> requests_;
};

}  // namespace ropewalk::python
