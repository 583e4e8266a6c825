// A collective of arrays that goes on while the program computes.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "_both_sides.hpp"
#include "_completion.hpp"
#include "_core.hpp"
#include "_left_collectives.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::python {

// This collective has been started; it keeps its arrays. Several threads may ask and wait.
class Pending : OfProcess {
 public:
  Pending(CollectiveRequest started, std::shared_ptr<Completion> its_end, Buffers its)
      : buffers_(std::move(its)), end_(std::move(its_end)), request_(std::move(started)) {}
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  // Waits for nobody, unless the communicator has no thread of its own: then the call is made here.
  ~Pending() {
    if (is_abandoned()) {  // its thread may still write to the arrays
      static_cast<void>(new CollectiveRequest(std::move(request_)));
      static_cast<void>(new Buffers(std::move(buffers_)));
    } else if (!ask_once()) {
      keep_until_complete(std::move(request_), std::move(end_), std::move(buffers_));
    }
  }
  bool test() {
    if (!end_->done()) {
      const std::unique_lock lock(asking_, std::try_to_lock);
      if (lock) ask([&] { request_.test(); });
    }
    if (!end_->done()) return false;
    end_->check();
    return true;
  }
  void wait() {
    if (!end_->done()) {
      const std::lock_guard lock(asking_);
      ask([&] { request_.wait(); });
    }
    end_->check();
  }
  nanobind::object result() const { return buffers_.result; }

 private:
  bool ask_once() {
    if (end_->done()) return true;
    const nanobind::gil_scoped_release released;
    ask([&] { request_.test(); });
    return end_->done();
  }
  // Where the communicator has no thread of its own, the call is made here. What it throws is in
  // end_, for everyone who asks.
  template <class Ask>
  static void ask(Ask ask) {
    try {
      ask();
    } catch (...) {
    }
  }

  Buffers buffers_;
  std::shared_ptr<Completion> end_;
  std::mutex asking_;
  CollectiveRequest request_;
};

// A call that tells its end.
template <class Call>
std::function<void(Collectives&)> telling(std::shared_ptr<Completion> end, Call call) {
  return [end = std::move(end), call = std::move(call)](Collectives& on) {
    try {
      call(on);
    } catch (...) {
      end->finish(std::current_exception());
      return;
    }
    end->finish(nullptr);
  };
}

}  // namespace ropewalk::python
