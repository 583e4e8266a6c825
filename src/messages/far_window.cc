#include "messages/far_window.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "mpi/collectively.hpp"
#include "mpi/fallback.hpp"
#include "mpi/progress.hpp"
#include "mpi/waiter.hpp"
#include "node/machine_share.hpp"
#include "os/waiting.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::messages {
namespace {

// A rank waits for an answer after so many requests, or the memory of the MPI there fills with what
// its thread has not taken yet: 512 KiB, at most_inline_bytes each.
constexpr int most_unanswered = 64;

void require_threads() {
  if (mpi::thread_level() == mpi::ThreadLevel::multiple) return;
  throw Error(ErrorCode::unsupported,
              "window: over several nodes a thread answers other ranks, and this MPI lets one "
              "thread call it; start it by MPI_Init_thread with MPI_THREAD_MULTIPLE");
}

}  // namespace

// Waits for a collective of MPI's.
class FarWindow::Wait final : public mpi::Waiter {
 public:
  explicit Wait(FarWindow& window) noexcept : window_(window) {}
  void wait(mpi::Request& request) override {
    try {
      window_.wait_for(request, window_.rank_);
    } catch (...) {
      mpi::leave(request);
      throw;
    }
  }

 private:
  FarWindow& window_;
};

// The communicator is no duplicate, because MPI_Comm_dup would call the attribute functions of the
// program.
std::unique_ptr<FarWindow> FarWindow::create(mpi::Comm comm, const WindowMemory& own,
                                             node::Waits& waits) {
  std::unique_ptr<FarWindow> made;
  mpi::collectively(comm, [&] {
    require_threads();
    const bool crowded = node::crowding(comm, mpi::size(comm)).here;
    mpi::meet(comm);
    made.reset(new FarWindow(comm, crowded));
    std::string not_watched;
    made->liveness_ = node::Liveness::create(comm, not_watched);
    mpi::Comm requests = mpi::comm_null();
    if (!mpi::try_split(comm, 0, made->rank_, requests)) {
      throw Error(ErrorCode::mpi, "window: MPI has no communicator left; free some");
    }
    made->comm_ = requests;
    mpi::return_errors(requests);
    made->server_ = std::make_unique<WindowServer>(requests, made->rank_, made->size_, own, waits);
  });
  waits.watch_with(made.get());
  return made;
}

FarWindow::FarWindow(mpi::Comm comm, bool crowded)
    : comm_(mpi::comm_null()),
      process_(getpid()),
      rank_(mpi::rank(comm)),
      size_(mpi::size(comm)),
      crowded_(crowded),
      request_(sizeof(OneSidedRequest) + most_inline_bytes),
      unanswered_(static_cast<std::size_t>(size_)) {}

FarWindow::~FarWindow() {
  server_.reset();
  if (comm_ != mpi::comm_null() && !has_left_ && is_here() && !mpi::finalized()) mpi::free(comm_);
}

// A child of fork has neither the thread nor an MPI to call.
bool FarWindow::is_here() const noexcept { return getpid() == process_; }

void FarWindow::put(const void* from, std::size_t bytes, int to, std::size_t offset) {
  const bool is_inline = bytes <= most_inline_bytes;
  const OneSidedRequest request{
      .kind = is_inline ? OneSidedRequest::Kind::put : OneSidedRequest::Kind::put_of_its_own,
      .offset = offset,
      .amount = bytes};
  ask(request, from, is_inline ? bytes : 0, to);
  if (!is_inline) finish(mpi::isend(from, bytes, to, window_data_tag, comm_), to);
}

void FarWindow::get(void* into, std::size_t bytes, int from, std::size_t offset) {
  ask_for({.kind = OneSidedRequest::Kind::get, .offset = offset, .amount = bytes}, nullptr, 0, from,
          into, bytes);
}

// Each element by itself is atomic, so many may travel in several requests.
void FarWindow::accumulate(OneSidedRequest request, const std::byte* operands, std::size_t count,
                           int to) {
  const std::size_t bytes = size_of(request.type);
  const std::size_t most = most_inline_bytes / bytes;
  request.kind = OneSidedRequest::Kind::accumulate;
  for (std::size_t first = 0; first < count; first += most) {
    request.amount = std::min(most, count - first);
    const bool has_operands = request.op != ReductionOp::no_op;
    ask(request, has_operands ? operands + first * bytes : nullptr,
        has_operands ? request.amount * bytes : 0, to);
    request.offset += request.amount * bytes;
  }
}

void FarWindow::change_element(const OneSidedRequest& request, const void* data, std::size_t bytes,
                               void* before, int rank) {
  ask_for(request, data, bytes, rank, before, size_of(request.type));
}

void FarWindow::signal(int rank, int index, std::uint64_t by) {
  ask({.kind = OneSidedRequest::Kind::signal, .signal = index, .amount = by}, nullptr, 0, rank);
}

void FarWindow::flush(int except) {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == except || unanswered_[static_cast<std::size_t>(rank)] == 0) continue;
    ask_for({.kind = OneSidedRequest::Kind::flush}, nullptr, 0, rank, nullptr, 0);
  }
}

void FarWindow::barrier() {
  Wait waiter(*this);
  mpi::fallback::barrier(comm_, &waiter);
}

// What other nodes have asked of this rank is done when all have come here.
void FarWindow::end(bool alone) noexcept {
  if (!is_here()) return;
  try {
    if (!alone) {
      flush();
      return barrier();
    }
  } catch (...) {  // a rank has died or left: nobody can wait for all
  }
  has_left_ = true;
  tell_left(comm_, rank_, size_);
}

void FarWindow::look() {
  look_for_dead();
  require_whole(rank_);
}

void FarWindow::look_for_dead() {
  if (liveness_ != nullptr) liveness_->look();
}

// ---- requests

void FarWindow::ask(const OneSidedRequest& request, const void* data, std::size_t bytes, int rank) {
  int& unanswered = unanswered_[static_cast<std::size_t>(rank)];
  if (unanswered == most_unanswered) {
    ask_for({.kind = OneSidedRequest::Kind::flush}, nullptr, 0, rank, nullptr, 0);
  }
  send(request, data, bytes, rank);
  ++unanswered;
}

void FarWindow::ask_for(const OneSidedRequest& request, const void* data, std::size_t bytes,
                        int rank, void* answer, std::size_t answer_bytes) {
  require_whole(rank);
  mpi::Request received = mpi::ireceive(answer, answer_bytes, rank, window_answer_tag, comm_);
  try {
    send(request, data, bytes, rank);
    wait_for(received, rank);
  } catch (...) {
    mpi::withdraw(received);
    throw;
  }
  unanswered_[static_cast<std::size_t>(rank)] = 0;  // requests are served in order
}

void FarWindow::send(const OneSidedRequest& request, const void* data, std::size_t bytes,
                     int rank) {
  require_whole(rank);
  std::memcpy(request_.data(), &request, sizeof request);
  if (bytes != 0) std::memcpy(request_.data() + sizeof request, data, bytes);
  finish(mpi::isend(request_.data(), sizeof request + bytes, rank, window_request_tag, comm_),
         rank);
}

void FarWindow::finish(mpi::Request sent, int rank) {
  try {
    wait_for(sent, rank);
  } catch (...) {
    mpi::leave(sent);
    throw;
  }
}

void FarWindow::wait_for(mpi::Request& request, int rank) {
  if (mpi::test(request)) return;
  os::Waiting wait(crowded_ ? os::wait_for_nodes_crowded : os::wait_for_nodes);
  while (!wait.poll([&] { return mpi::test(request); })) {
    if (!wait.spins()) mpi::look_also();
    if (wait.look_due()) {
      look_for_dead();
      require_whole(rank);
    }
    wait.pause();
  }
}

void FarWindow::require_whole(int rank) {
  server_->require_serving();
  if (liveness_ != nullptr) liveness_->require_whole();
  const int gone = rank != rank_ ? rank : server_->first_left();
  if (gone < 0 || !server_->has_left(gone)) return;
  throw Error(ErrorCode::peer_dead,
              "rank " + std::to_string(gone) +
                  " has left the window after an error of its own: it cannot be used any more");
}

}  // namespace ropewalk::messages
