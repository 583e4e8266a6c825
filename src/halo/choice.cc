// The measurement behind Strategy::automatic.
#include "halo/choice.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <optional>

#include "halo/joint.hpp"

namespace ropewalk::halo {

namespace {

// The least of a few repetitions: what disturbs a measurement only ever adds to it. One more run
// before them sets up connections and registrations.
constexpr std::size_t repetitions = 4;

std::size_t scratch_bytes(const Draft& draft) {
  std::size_t bytes = 0;
  for (const Message& message : draft.messages) {
    if (!draft.staged(message)) bytes += message.bytes;
  }
  return bytes;
}

// The same messages with scratch memory in place of the caller's, a place each: sends that shared
// one would come out of the caches, and look faster than they are beside `direct`.
std::vector<Message> redirected(const Draft& draft, const Buffer<std::byte>& scratch) {
  std::vector<Message> out = draft.messages;
  std::byte* next = scratch.data();
  for (Message& message : out) {
    if (draft.staged(message)) continue;
    message.data = next;
    next += message.bytes;
  }
  return out;
}

bool all(bool own, mpi::Comm comm) {
  std::array<std::int64_t, 1> value{own ? 1 : 0};
  mpi::all_reduce(value, mpi::Combine::min, comm);
  return value[0] == 1;
}

// What is measured.
struct Subjects {
  const Draft& draft;
  MessagePlan& plan;
  Direct* rehearsal;
};

void exchange(const Subjects& subjects, Strategy strategy) {
  if (strategy == Strategy::direct) {
    subjects.rehearsal->start();
    subjects.rehearsal->wait();
    return;
  }
  for (const StridedCopy& pack : subjects.draft.packs) pack.run();
  subjects.plan.start(strategy);
  subjects.plan.wait();
}

double seconds(const Subjects& subjects, Strategy strategy, mpi::Comm comm) {
  mpi::barrier(comm);
  const auto begin = std::chrono::steady_clock::now();
  exchange(subjects, strategy);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

std::vector<Strategy> candidates(mpi::Comm comm, const EndpointSet& endpoints,
                                 const Direct* rehearsal) {
  std::vector<Strategy> out{Strategy::concurrent};
  if (all(endpoints.has_threads(), comm)) out.push_back(Strategy::threaded);
  if (all(rehearsal != nullptr, comm)) out.push_back(Strategy::direct);
  return out;
}

Strategy fastest(mpi::Comm comm, EndpointSet& endpoints, const Draft& draft, Direct* rehearsal) {
  if (all(draft.messages.empty(), comm)) return Strategy::concurrent;
  Buffer<std::byte> scratch;
  std::optional<MessagePlan> plan;
  jointly(comm, [&] {
    const std::size_t bytes = scratch_bytes(draft);
    if (bytes > 0) scratch = Buffer<std::byte>(bytes);
    plan = endpoints.plan(redirected(draft, scratch));
  });
  const std::vector<Strategy> choices = candidates(comm, endpoints, rehearsal);
  std::vector<double> times;  // repetition by repetition, so that drift meets all alike
  for (std::size_t r = 0; r <= repetitions; ++r) {
    for (Strategy strategy : choices) {
      times.push_back(seconds({draft, *plan, rehearsal}, strategy, comm));
    }
  }
  mpi::all_reduce(std::span<double>(times), mpi::Combine::max, comm);
  std::vector<double> best(choices.size(), std::numeric_limits<double>::max());
  for (std::size_t i = choices.size(); i < times.size(); ++i) {
    double& least = best[i % choices.size()];
    least = std::min(least, times[i]);
  }
  const auto winner = std::min_element(best.begin(), best.end()) - best.begin();
  return choices[static_cast<std::size_t>(winner)];
}

}  // namespace ropewalk::halo
