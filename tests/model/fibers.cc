#include "model/fibers.hpp"

#include <ucontext.h>

#include <csetjmp>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace ropewalk::model {
namespace {

constexpr std::size_t stack_bytes = std::size_t{256} << 10;

Fibers* entering = nullptr;  // makecontext passes ints only

}  // namespace

struct Fibers::Fiber {
  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack;
  const void* bottom = nullptr;  // of the stack, for the address sanitizer
  std::size_t bytes = 0;
  void* fake_stack = nullptr;    // likewise
  void* thread_state = nullptr;  // for the thread sanitizer
  std::function<void()> body;
  std::jmp_buf top{};  // where a dropped fiber goes on
  bool ended = true;
  bool dropped = false;
};

Fibers::Fibers(int count) : outside_(new Fiber) {
#if defined(__SANITIZE_THREAD__)
  outside_->thread_state = __tsan_get_current_fiber();
#endif
  for (int index = 0; index < count; ++index) {
    auto fiber = std::make_unique<Fiber>();
    fiber->stack = std::make_unique<std::byte[]>(stack_bytes);
    fiber->bottom = fiber->stack.get();
    fiber->bytes = stack_bytes;
#if defined(__SANITIZE_THREAD__)
    fiber->thread_state = __tsan_create_fiber(0);
#endif
    prepare(*fiber);
    fibers_.push_back(std::move(fiber));
  }
}

// A function of its own: getcontext may return twice, for all the compiler knows.
__attribute__((noinline)) void Fibers::prepare(Fiber& fiber) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = stack_bytes;
  makecontext(&fiber.context, &Fibers::enter, 0);
}

Fibers::~Fibers() {
#if defined(__SANITIZE_THREAD__)
  for (auto& fiber : fibers_) __tsan_destroy_fiber(fiber->thread_state);
#endif
}

void Fibers::switch_between(Fiber& from, Fiber& to) {
  entering = this;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to.thread_state, 0);
#endif
  swapcontext(&from.context, &to.context);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

void Fibers::enter() {
  Fibers& fibers = *entering;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &fibers.outside_->bottom, &fibers.outside_->bytes);
#endif
  fibers.run(*fibers.running_);
}

// Never returns: an ended fiber is started again.
void Fibers::run(Fiber& fiber) {
  for (;;) {
    if (!fiber.dropped && setjmp(fiber.top) == 0) fiber.body();
    fiber.ended = true;
    fiber.dropped = false;
    switch_between(fiber, *outside_);
  }
}

void Fibers::start(int fiber, std::function<void()> body) {
  fibers_[static_cast<std::size_t>(fiber)]->body = std::move(body);
  fibers_[static_cast<std::size_t>(fiber)]->ended = false;
}

void Fibers::resume(int fiber) {
  running_ = fibers_[static_cast<std::size_t>(fiber)].get();
  switch_between(*outside_, *running_);
  running_ = nullptr;
}

bool Fibers::ended(int fiber) const { return fibers_[static_cast<std::size_t>(fiber)]->ended; }

const void* Fibers::end_of_stack(int fiber) const {
  return fibers_[static_cast<std::size_t>(fiber)]->stack.get() + stack_bytes;
}

void Fibers::drop(int fiber) {
  Fiber& dropped = *fibers_[static_cast<std::size_t>(fiber)];
  if (dropped.ended) return;
  dropped.dropped = true;
  resume(fiber);
}

void Fibers::yield() {
  Fiber& self = *running_;
  switch_between(self, *outside_);
  if (self.dropped) drop_self();
}

void Fibers::drop_self() { std::longjmp(running_->top, 1); }

}  // namespace ropewalk::model
