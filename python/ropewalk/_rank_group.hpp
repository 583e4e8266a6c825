// A RankGroup holds the ranks of one process group of PyTorch, and makes their collectives and
// messages, which take addresses. Only ropewalk/torch knows what a tensor is and which call torch
// wants. Nothing is checked here that the library checks.
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
#include <utility>

#include "_completion.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/store_communicator.hpp"

namespace ropewalk::python {

// A Kept holds the memory of a call or a message: it is a reference to a Python object.
class Kept {
 public:
  Kept() = default;
  // Takes over a new reference.
  explicit Kept(PyObject* held) noexcept : held_(held) {}
  // Takes the GIL where there still is a reference and an interpreter.
  ~Kept();
  Kept(Kept&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  Kept& operator=(Kept&& other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  // Gives the memory back. The caller must hold the GIL.
  void give_back() noexcept { Py_XDECREF(std::exchange(held_, nullptr)); }

 private:
  PyObject* held_ = nullptr;
};

// A messenger holds the messages under way on a channel, which takes one call at a time. A thread
// makes progress on the messages that nobody waits for.
class Messenger {
 public:
  explicit Messenger(Communicator on);
  ~Messenger() { end(); }
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;

  struct Message {
    Completion completion;
    MessageRequest request;
    // The sender, which is known when the message is complete.
    int source = any_source;
    Kept kept;
  };
  using MessagePointer = std::shared_ptr<Message>;

  // Starts a message. `keep` is a new reference.
  MessagePointer send(const void* data, std::size_t bytes, int to, int tag, PyObject* keep);
  MessagePointer receive(void* data, std::size_t bytes, int from, int tag, PyObject* keep);
  // Returns false where the message is not complete after `seconds`. The caller must not hold the
  // GIL.
  bool wait(Message&, double seconds);
  bool test(Message&);
  // Gives the memory of complete messages back. The caller must hold the GIL.
  void forget();
  // Gives up the messages under way and ends the channel. Who waits for a message gets an error.
  void end() noexcept;

 private:
  template <class Start>
  MessagePointer begin(PyObject* keep, Start start);
  bool look(Message&);
  static void withdraw(Message&) noexcept;
  void progress();

  // The process that has made the messenger. The thread does not run in a child of fork.
  int process_;
  std::mutex mutex_;                // guards the members below
  std::optional<Channel> channel_;  // none after the end
  std::condition_variable changed_;
  std::list<MessagePointer> under_way_;
  std::list<MessagePointer> complete_;
  bool ending_ = false;
  std::thread thread_;
};

class RankGroup {
 public:
  // Making a group is collective. Either a store is given that only this group uses, or the handle
  // of a communicator.
  RankGroup(std::shared_ptr<KeyValueStore> store, int rank, int size,
            std::optional<std::uintptr_t> handle, int timeout_s);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  struct Started {
    Completion completion;
    Kept kept;
  };
  using StartedPointer = std::shared_ptr<Started>;
  using Call = std::function<void(Collectives&)>;

  // Returns what a function says of the collectives. Waits for the call under way.
  template <class Question>
  auto ask(Question question) {
    const std::lock_guard one(calling_);
    check_open();
    return question(*collectives_);
  }
  // A message that is still used when the group is closed keeps the messenger.
  const std::shared_ptr<Messenger>& messenger() const noexcept { return messenger_; }
  // Makes the call on the caller's thread, after those that were started. The caller must not hold
  // the GIL.
  void run(const Call&);
  // Has a thread of the group make the call. `keep` is a new reference.
  StartedPointer start(Call, PyObject* keep);
  // Gives the memory of complete calls and messages back. The caller must hold the GIL.
  void forget();
  // A rank calls this instead of a call that it cannot make. The call of the others then fails,
  // too.
  void refuse() noexcept;
  std::uint64_t calls() const noexcept { return calls_.load(std::memory_order_relaxed); }
  // Returns why no call can be made any more, or an empty text where calls can be made.
  std::string broken();
  // Waits for the calls under way, then ends the group without waiting for the other ranks. Where
  // `by_error` is set, the next call of the others throws.
  void close(bool by_error);
  bool closed() const noexcept { return closed_.load(std::memory_order_relaxed); }

 private:
  void check_open() const;
  void check_whole();
  void make(Started&, const Call&, Collectives&) noexcept;
  void note(const Error&);

  int process_;
  std::unique_ptr<StoreCommunicator> own_;
  std::unique_ptr<Collectives> collectives_;
  std::shared_ptr<Messenger> messenger_;
  std::atomic<bool> closed_{false};      // a hint without calling_, which guards the collectives
  std::atomic<std::uint64_t> calls_{0};  // counts the calls that were made or started
  std::mutex calling_;                   // the collectives take calls of one thread at a time
  std::mutex mutex_;                     // guards the members below
  std::string broken_;
  std::list<StartedPointer> kept_;
  std::list<CollectiveRequest> requests_;
};

}  // namespace ropewalk::python
