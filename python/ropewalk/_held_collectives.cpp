#include "_held_collectives.hpp"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace ropewalk::python {
namespace {

// Ends communication of this rank as an exception does that takes it away: its destructor tells
// the others, who would wait for a call that does not come.
void leave(std::unique_ptr<Collectives> value) {
  struct Leaving {};
  try {
    const auto ends_while_unwinding = std::move(value);
    throw Leaving();
  } catch (const Leaving&) {
  }
}

}  // namespace

std::unique_ptr<HeldCollectives> make_collectives(std::optional<std::uintptr_t> handle,
                                                  int threads) {
  return std::make_unique<HeldCollectives>(
      nullptr,
      std::make_unique<Collectives>(communicator(handle), CollectivesOptions{.threads = threads}));
}

std::unique_ptr<HeldCollectives> split(HeldCollectives& self, std::optional<std::uintptr_t> handle,
                                       std::optional<int> color, int key, int threads) {
  static_cast<void>(self.get());
  const InCall one(self.calls);
  const nb::gil_scoped_release released;
  auto own = std::make_unique<SplitCommunicator>(communicator(handle), color, key);
  if (!own->member()) return nullptr;
  auto made =
      std::make_unique<Collectives>(own->communicator(), CollectivesOptions{.threads = threads});
  return std::make_unique<HeldCollectives>(std::move(own), std::move(made));
}

void HeldCollectives::close() {
  check_not_in_call(calls, "communicator");
  auto closing = std::move(value);
  auto with = std::move(own);
  {
    const nb::gil_scoped_release released;
    closing.reset();
    with.reset();
  }
  tidy_left_collectives();
}

void HeldCollectives::end() {
  if (value == nullptr || calls > 0 || !is_own()) return;
  const bool is_near = value->nodes() == 1;
  auto leaving = is_near ? std::move(value) : nullptr;
  {
    const nb::gil_scoped_release released;
    if (is_near) {
      leave(std::move(leaving));  // its destructor waits for its thread
    } else if (started) {
      value->start([](Collectives&) {}).wait();  // calls end in the order of their starts
    }
  }
  tidy_left_collectives();
}

void HeldCollectives::drop() {
  const bool is_near = value != nullptr && value->nodes() == 1;
  {
    const nb::gil_scoped_release released;
    if (is_near) leave(std::move(value));
    value.reset();
    own.reset();
  }
  tidy_left_collectives();
}

}  // namespace ropewalk::python
