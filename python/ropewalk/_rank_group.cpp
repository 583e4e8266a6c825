#include "_rank_group.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "_core.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::python {
namespace {

// A rank that waits for a message first looks at it without a pause, for some 20 us, which is more
// than a small message takes. Then it yields between two looks, and after 10 ms it sleeps for
// 0.1 ms between them.
constexpr int looks_at_full_speed = 500;
constexpr auto awake = std::chrono::milliseconds(10);
constexpr auto nap = std::chrono::microseconds(100);
// The thread sleeps for this long between two looks at the messages that nobody waits for.
constexpr auto look_after = std::chrono::milliseconds(1);

Error destroyed() { return {ErrorCode::argument, "process group: destroyed, expected one in use"}; }

}  // namespace

Kept::~Kept() {
  if (held_ == nullptr || !may_take_gil()) return;
  const nanobind::gil_scoped_acquire with;
  give_back();
}

// ---- messages -----------------------------------------------------------------------------------

Messenger::Messenger(Communicator on) : process_(getpid()), channel_(on) {}

void Messenger::end() noexcept {
  if (process_ != getpid()) {
    if (thread_.joinable()) static_cast<void>(new std::thread(std::move(thread_)));  // the parent's
    return;
  }
  std::thread last;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
    last.swap(thread_);
  }
  if (last.joinable()) last.join();
  const std::lock_guard lock(mutex_);
  for (const MessagePointer& each : under_way_) withdraw(*each);
  complete_.splice(complete_.end(), under_way_);
  channel_.reset();
}

// Destroys the request as an exception would, so that it does not wait for the other rank.
void Messenger::withdraw(Message& message) noexcept {
  struct Thrown {};
  try {
    const MessageRequest last = std::move(message.request);
    throw Thrown();
  } catch (const Thrown&) {  // was thrown only so that the destructor runs during unwinding
  }
  message.completion.finish(std::make_exception_ptr(
      Error(ErrorCode::argument,
            "message: its process group was destroyed before it was complete, "
            "expected a wait for it")));
}

template <class Start>
Messenger::MessagePointer Messenger::begin(PyObject* keep, Start start) {
  auto message = std::make_shared<Message>();
  message->kept = Kept(keep);
  const std::lock_guard lock(mutex_);
  // The message goes into this list first, so that forget() gives its memory back whatever is
  // thrown.
  complete_.push_back(message);
  if (!channel_) {
    message->completion.finish(nullptr);
    throw destroyed();
  }
  message->request = start(*channel_);
  if (look(*message)) return message;
  under_way_.splice(under_way_.end(), complete_, std::prev(complete_.end()));
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { progress(); });
  } else if (under_way_.size() == 1) {
    changed_.notify_all();
  }
  return message;
}

Messenger::MessagePointer Messenger::send(const void* data, std::size_t bytes, int to, int tag,
                                          PyObject* keep) {
  return begin(keep, [&](Channel& on) { return on.start_send(data, bytes, to, tag); });
}

Messenger::MessagePointer Messenger::receive(void* data, std::size_t bytes, int from, int tag,
                                             PyObject* keep) {
  return begin(keep, [&](Channel& on) { return on.start_receive(data, bytes, from, tag); });
}

// Returns whether the message is over, which it is after an error, too. The caller holds the mutex.
bool Messenger::look(Message& message) {
  if (message.completion.done()) return true;
  std::exception_ptr error;
  try {
    if (!message.request.test()) return false;
    message.source = message.request.status().source;
  } catch (...) {
    error = std::current_exception();
  }
  message.completion.finish(std::move(error));
  return true;
}

bool Messenger::test(Message& message) {
  if (message.completion.done()) return true;
  const std::lock_guard lock(mutex_);
  return look(message);
}

bool Messenger::wait(Message& message, double seconds) {
  using Clock = std::chrono::steady_clock;
  for (int looks = 0; looks < looks_at_full_speed; ++looks) {
    if (test(message)) return true;
  }
  const auto begun = Clock::now();
  while (!test(message)) {
    const std::chrono::duration<double> waited = Clock::now() - begun;
    if (waited.count() > seconds) return false;
    if (waited < awake) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(nap);
    }
  }
  return true;
}

void Messenger::progress() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    changed_.wait(lock, [&] { return ending_ || !under_way_.empty(); });
    for (auto each = under_way_.begin(); each != under_way_.end();) {
      const auto next = std::next(each);
      if (look(**each)) complete_.splice(complete_.end(), under_way_, each);
      each = next;
    }
    if (!ending_) changed_.wait_for(lock, look_after, [&] { return ending_; });
  }
}

void Messenger::forget() {
  std::list<MessagePointer> over;
  {
    // Returns at once if another thread is in the channel, because that thread may wait for the GIL
    // in order to tell that a message is complete.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    over.swap(complete_);
  }
  for (const MessagePointer& each : over) each->kept.give_back();
}

// ---- the group ----------------------------------------------------------------------------------

RankGroup::RankGroup(std::shared_ptr<KeyValueStore> store, int rank, int size,
                     std::optional<std::uintptr_t> handle, int timeout_s)
    : process_(getpid()) {
  if (!handle) {
    own_ = std::make_unique<StoreCommunicator>(std::move(store), rank, size, timeout_s);
  }
  const Communicator on = handle ? Communicator(*handle) : own_->communicator();
  collectives_ = std::make_unique<Collectives>(on, CollectivesOptions{.timeout_s = timeout_s});
  messenger_ = std::make_shared<Messenger>(on);
}

RankGroup::~RankGroup() {
  if (process_ == getpid() && !abandoned()) {
    const nanobind::gil_scoped_release released;  // calls under way may need it
    close(false);
  } else {
    // Nothing is destroyed here, because that would wait for other ranks. In a child of fork the
    // threads are the parent's.
    static_cast<void>(new std::shared_ptr<Messenger>(std::move(messenger_)));
    static_cast<void>(collectives_.release());
    static_cast<void>(own_.release());
    for (CollectiveRequest& each : requests_) new CollectiveRequest(std::move(each));
    static_cast<void>(new std::list<StartedPointer>(std::move(kept_)));
  }
}

void RankGroup::check_open() const {
  if (closed()) throw destroyed();
}

void RankGroup::check_whole() {
  check_open();
  const std::lock_guard lock(mutex_);
  if (!broken_.empty()) throw Error(ErrorCode::peer_dead, broken_);
}

void RankGroup::note(const Error& error) {
  if (error.code() != ErrorCode::peer_dead) return;
  const std::lock_guard lock(mutex_);
  if (broken_.empty()) broken_ = error.what();
}

std::string RankGroup::broken() {
  const std::lock_guard lock(mutex_);
  return broken_;
}

void RankGroup::run(const Call& call) {
  const std::lock_guard one(calling_);
  calls_.fetch_add(1, std::memory_order_relaxed);
  check_whole();
  try {
    call(*collectives_);
  } catch (const Error& error) {
    note(error);
    throw;
  }
}

RankGroup::StartedPointer RankGroup::start(Call call, PyObject* keep) {
  auto started = std::make_shared<Started>();
  started->kept = Kept(keep);
  const std::lock_guard one(calling_);
  calls_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    kept_.push_back(started);
  }
  try {
    check_whole();
    CollectiveRequest request = collectives_->start(
        [this, started, call = std::move(call)](Collectives& on) { make(*started, call, on); });
    // Where the system has no thread to give, test() makes the call here: who waits for `started`
    // waits for its completion alone, and would never come to make it.
    if (request.test()) return started;
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
  } catch (...) {
    started->completion.finish(nullptr);  // nobody else has it, so forget() takes it
    throw;
  }
  return started;
}

// Makes a started call. The thread of the collectives runs this.
void RankGroup::make(Started& started, const Call& call, Collectives& on) noexcept {
  std::exception_ptr error;
  try {
    if (const std::string why = broken(); !why.empty()) throw Error(ErrorCode::peer_dead, why);
    call(on);
  } catch (const Error& thrown) {
    note(thrown);
    error = std::current_exception();
  } catch (...) {
    error = std::current_exception();
  }
  started.completion.finish(std::move(error));
}

void RankGroup::forget() {
  std::list<StartedPointer> over;
  std::list<CollectiveRequest> requests;
  {
    const std::lock_guard lock(mutex_);
    while (!kept_.empty() && kept_.front()->completion.done()) {
      over.splice(over.end(), kept_, kept_.begin());
    }
    requests.swap(requests_);
  }
  // Without the mutex, which a call takes, too.
  while (!requests.empty() && requests.front().test()) requests.pop_front();
  {
    const std::lock_guard lock(mutex_);
    requests_.splice(requests_.begin(), requests);
  }
  for (const StartedPointer& each : over) each->kept.give_back();
  messenger_->forget();
}

// Makes a call that is always refused, so that the call of the others fails.
void RankGroup::refuse() noexcept {
  try {
    run([](Collectives& on) { on.broadcast(nullptr, 1, 0); });
  } catch (const std::exception&) {  // this error is the purpose
  }
}

// When an exception ends a Collectives, it tells the other ranks, and their next call throws.
void RankGroup::close(bool by_error) {
  if (process_ != getpid()) return;  // the destructor leaves alone what is the parent's
  const std::lock_guard one(calling_);
  if (closed_.exchange(true, std::memory_order_relaxed)) return;
  requests_.clear();  // the destructors wait for each call
  messenger_->end();
  struct Ended {};
  try {
    const std::unique_ptr<Collectives> last = std::move(collectives_);
    if (by_error || !broken().empty()) throw Ended();
  } catch (const Ended&) {  // was thrown only so that the destructor runs during unwinding
  }
  own_.reset();
}

}  // namespace ropewalk::python
