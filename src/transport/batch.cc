#include "transport/batch.hpp"

#include <algorithm>
#include <utility>

#include "os/clock.hpp"

namespace ropewalk::transport {

void Batch::post_kind(bool receives) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    if (part.receive != receives) continue;
    const mpi::Comm lane = lanes_[static_cast<std::size_t>(part.lane)];
    requests_[i] = receives ? mpi::ireceive(part.data, part.bytes, part.peer, part.tag, lane)
                            : mpi::isend(part.data, part.bytes, part.peer, part.tag, lane);
  }
}

void Batch::post() noexcept {
  stopping_ = false;
  error_ = nullptr;
  try {
    std::fill(requests_.begin(), requests_.end(), mpi::request_null());
    post_kind(true);
    post_kind(false);
  } catch (...) {
    fail();
  }
}

bool Batch::advance() noexcept {
  if (!advance_sends()) return false;
  if (stopping_) cancel_receives();
  return true;
}

bool Batch::advance_sends() noexcept {
  if (!stopping_) {
    try {
      return test();
    } catch (...) {
      fail();
    }
  }
  bool sends_complete = true;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!test_quietly(requests_[i]) && !parts_[i].receive) sends_complete = false;
  }
  return sends_complete;
}

bool Batch::test() {
  if (!one_by_one_) return mpi::test_all(requests_);
  bool complete = true;
  for (mpi::Request& request : requests_) {
    if (request != mpi::request_null() && !mpi::test(request)) complete = false;
  }
  return complete;
}

void Batch::cancel_receives() noexcept {
  for (mpi::Request& request : requests_) {
    if (!test_quietly(request)) mpi::cancel(request);
  }
}

void Batch::abandon() noexcept {
  constexpr std::int64_t patience_ns = 500'000'000;  // in all, for what its sender has begun
  const std::int64_t until = os::steady_ns() + patience_ns;
  stopping_ = true;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].receive) {
      mpi::withdraw(requests_[i], until - os::steady_ns());
    } else if (!test_quietly(requests_[i])) {
      requests_[i] = mpi::request_null();
    }
  }
}

void Batch::fail() noexcept {
  error_ = std::current_exception();
  stopping_ = true;
}

std::exception_ptr Batch::take_error() noexcept { return std::exchange(error_, nullptr); }

bool test_quietly(mpi::Request& request) noexcept {
  try {
    return request == mpi::request_null() || mpi::test(request);
  } catch (...) {
    try {
      request = mpi::request_null();
    } catch (...) {  // no MPI any more: nothing can be pending either
    }
    return true;
  }
}

}  // namespace ropewalk::transport
