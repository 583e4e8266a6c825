#include "mpi/progress.hpp"

#include <array>
#include <atomic>

#include "mpi/attributes.hpp"
#include "mpi/library.hpp"

namespace ropewalk::mpi {
namespace {

// This is the request that is tested. There is one in each process, and whoever has the turn may
// use it.
enum class State { none, standing, ended };
State state = State::none;
Word request = 0;
std::atomic_flag taken;

// MPI forbids two threads to test one request at the same time.
class Turn {
 public:
  // Acquire pairs with the release of the destructor: the request is as the last owner left it.
  Turn() noexcept : mine_(!taken.test_and_set(std::memory_order_acquire)) {}
  ~Turn() {
    if (mine_) taken.clear(std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const noexcept { return mine_; }

 private:
  bool mine_;
};

int fill_status(void*, Word) { return 0; }
int free_extra(void*) { return 0; }
int cancel_request(void*, int) { return 0; }

// MPI_Finalize has begun: it wants every request completed. Errors are its own to report.
void end_request(void*) noexcept {
  while (taken.test_and_set(std::memory_order_acquire)) {  // another thread is about to return
  }
  try {
    if (state == State::standing) {
      library().call.grequest_complete(request);
      library().call.wait(&request, library().abi.status_ignore);
    }
  } catch (...) {  // no library: then there is no request either
  }
  state = State::ended;
  taken.clear(std::memory_order_release);
}

void start_request() {
  check(
      library().call.grequest_start(&fill_status, &free_extra, &cancel_request, nullptr, &request),
      "MPI_Grequest_start");
  state = State::standing;
  // Without the world model (MPI sessions) there is no MPI_COMM_SELF, and MPI_Finalize never comes.
  if (!initialized()) return;
  set_attribute(comm_self(), create_keyval(&end_request), &request);
}

void test_request() {
  Word tested = request;
  int complete = 0;
  check(library().call.test(&tested, &complete, library().abi.status_ignore), "MPI_Test");
}

std::atomic<bool> one_sided{false};

using Look = void (*)() noexcept;

// Filled from the front: messages of the drop-in, and those of channels.
std::array<std::atomic<Look>, 2> owners_looks{};

// What the functions call may ask for progress, too.
void call_looks() noexcept {
  static thread_local bool looking = false;
  if (looking) return;
  looking = true;
  for (const std::atomic<Look>& look : owners_looks) {
    // Pairs with the release in progress_also(): what the function needs is there.
    if (const Look set = look.load(std::memory_order_acquire)) set();
  }
  looking = false;
}

}  // namespace

void progress_also(void (*look)() noexcept) noexcept {
  for (std::atomic<Look>& place : owners_looks) {
    Look before = nullptr;
    if (place.compare_exchange_strong(before, look, std::memory_order_release,
                                      std::memory_order_relaxed) ||
        before == look) {
      return;
    }
  }
}

void look_also() noexcept {
  if (owners_looks[0].load(std::memory_order_relaxed) != nullptr) call_looks();
}

void progress() {
  look_also();
  if (library().call.grequest_start == nullptr) {  // the tests' MPI, whose probes always look
    iprobe(any_source(), any_tag(), comm_world());
    return;
  }
  const Turn turn;
  if (!turn) return;
  if (state == State::none) start_request();
  if (state == State::standing) {
    test_request();
  } else {  // within MPI_Finalize, where nothing lies unreceived
    iprobe(any_source(), any_tag(), comm_world());
  }
}

void expect_one_sided() noexcept { one_sided.store(true, std::memory_order_relaxed); }
bool one_sided_expected() noexcept { return one_sided.load(std::memory_order_relaxed); }

}  // namespace ropewalk::mpi
