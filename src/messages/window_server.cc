#include "messages/window_server.hpp"

#include <cstring>
#include <mutex>

#include "messages/atomic_elements.hpp"
#include "mpi/waiter.hpp"
#include "os/waiting.hpp"

namespace ropewalk::messages {
namespace {

// What MPI keeps must stay where it is. Never destroyed.
template <class Left>
void keep(std::list<Left>&& left) {
  static auto* all = new std::list<Left>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  all->splice(all->end(), left);
}

}  // namespace

void tell_left(mpi::Comm comm, int own, int ranks) noexcept {
  static constexpr OneSidedRequest request{.kind =
                                               OneSidedRequest::Kind::leave};  // MPI may keep it
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == own) continue;
    try {
      mpi::Request sent = mpi::isend(&request, sizeof request, rank, window_request_tag, comm);
      if (!mpi::test(sent)) mpi::leave(sent);
    } catch (...) {  // an error is on its way already
    }
  }
}

WindowServer::WindowServer(mpi::Comm comm, int own, int ranks, const WindowMemory& memory,
                           node::Waits& waits)
    : comm_(comm),
      own_(own),
      ranks_(ranks),
      memory_(memory),
      waits_(waits),
      request_(sizeof(OneSidedRequest) + most_inline_bytes),
      left_(std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(ranks))),
      end_of_mpi_(mpi::create_keyval(&stop_server)) {
  // The attribute is deleted when MPI ends, after which the thread may not call it.
  mpi::set_attribute(mpi::comm_self(), end_of_mpi_, this);
  try {
    thread_ = threads::Thread({.name = "rw-window",
                               .owner = "window: the thread that answers other nodes",
                               .remedy = "make fewer windows"},
                              [this] { run(); });
  } catch (...) {
    forget_attribute();
    throw;
  }
}

// There is nothing to end in a child of fork, nor after MPI has ended.
WindowServer::~WindowServer() {
  if (!thread_.is_here()) return;
  stop();
  forget_attribute();
}

void WindowServer::stop_server(void* server) noexcept {
  static_cast<WindowServer*>(server)->stop();
}

void WindowServer::stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  thread_.join();
}

void WindowServer::forget_attribute() noexcept {
  try {
    mpi::delete_attribute(mpi::comm_self(), end_of_mpi_);
    mpi::free_keyval(end_of_mpi_);
  } catch (...) {  // MPI is failing, and nothing depends on it
  }
}

bool WindowServer::has_left(int rank) const noexcept {
  return left_[static_cast<std::size_t>(rank)].load(std::memory_order_relaxed);
}

int WindowServer::first_left() const noexcept {
  int rank = 0;
  while (rank < ranks_ && !has_left(rank)) ++rank;
  return rank < ranks_ ? rank : -1;
}

void WindowServer::require_serving() const {
  // Pairs with the release in run().
  if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
}

void WindowServer::run() noexcept {
  try {
    serve_until_told();
  } catch (...) {
    error_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
    tell_left(comm_, own_, ranks_);
  }
  leave_answers();
}

void WindowServer::serve_until_told() {
  os::Waiting wait(os::wait_for_messages);
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (wait.poll([&] { return serve_one(); })) {
      wait.restart();
    } else {
      wait.pause();
    }
  }
}

// Returns true if there was a request.
bool WindowServer::serve_one() {
  advance_answers();
  mpi::Status found;
  if (!mpi::iprobe(mpi::any_source(), window_request_tag, comm_, found)) return false;
  mpi::receive(request_.data(), request_.size(), found.source, window_request_tag, comm_);
  OneSidedRequest request;
  std::memcpy(&request, request_.data(), sizeof request);
  serve(request, request_.data() + sizeof request, found.source);
  return true;
}

void WindowServer::serve(const OneSidedRequest& request, const std::byte* data, int source) {
  switch (request.kind) {
    case OneSidedRequest::Kind::put:
      std::memcpy(at(request), data, request.amount);
      return;
    case OneSidedRequest::Kind::put_of_its_own:
      return receive_data(request, source);
    case OneSidedRequest::Kind::accumulate:
      return apply(at(request), data, nullptr, request.amount, request.type, request.op);
    case OneSidedRequest::Kind::signal:
      // Pairs with the acquires in Window::signals() and wait_signal().
      memory_.signals[request.signal].count.fetch_add(request.amount, std::memory_order_release);
      return waits_.wake_sleepers();
    case OneSidedRequest::Kind::get:
      return answer(at(request), request.amount, source, answers_.emplace_back());
    case OneSidedRequest::Kind::fetch_and_op:
    case OneSidedRequest::Kind::compare_and_swap:
      return answer_element(request, data, source);
    case OneSidedRequest::Kind::flush:
      return answer(nullptr, 0, source, answers_.emplace_back());
    case OneSidedRequest::Kind::leave:
      left_[static_cast<std::size_t>(source)].store(true, std::memory_order_relaxed);
      return;
  }
}

// Its sender waits until it is received, so it comes soon, unless that rank is gone.
void WindowServer::receive_data(const OneSidedRequest& request, int source) {
  mpi::Request data = mpi::ireceive(at(request), request.amount, source, window_data_tag, comm_);
  os::Waiting wait(os::wait_for_messages);
  while (!wait.poll([&] { return mpi::test(data); })) {
    if (stopping_.load(std::memory_order_relaxed)) {
      mpi::withdraw(data);
      return;
    }
    wait.pause();
  }
}

void WindowServer::answer_element(const OneSidedRequest& request, const std::byte* data,
                                  int source) {
  Answer& made = answers_.emplace_back();
  const std::size_t bytes = size_of(request.type);
  if (request.kind == OneSidedRequest::Kind::compare_and_swap) {
    compare_and_swap(at(request), data, data + bytes, made.element.data(), request.type);
  } else {
    apply(at(request), data, made.element.data(), 1, request.type, request.op);
  }
  answer(made.element.data(), bytes, source, made);
}

void WindowServer::answer(const void* data, std::size_t bytes, int source, Answer& made) {
  made.request = mpi::isend(data, bytes, source, window_answer_tag, comm_);
}

void WindowServer::advance_answers() {
  std::erase_if(answers_, [](Answer& each) { return mpi::test(each.request); });
}

// What was not sent has nobody to take it: MPI keeps it.
void WindowServer::leave_answers() noexcept {
  if (answers_.empty()) return;
  for (Answer& each : answers_) mpi::leave(each.request);
  try {
    keep(std::move(answers_));
  } catch (const std::exception&) {  // no memory, and a rank is gone already
  }
}

}  // namespace ropewalk::messages
