// Endpoints on a real MPI: random messages against the naive expectation, every strategy, all
// lanes, sets made and freed many times, and no allocation of ours between start and wait.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/endpoint.hpp"
#include "ropewalk/process.hpp"
#include "transport/message_set.hpp"

namespace {
std::atomic<long> allocations{0};
}

void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// GCC does not see that the two belong together.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace ropewalk;

constexpr Strategy strategies[] = {Strategy::sequential, Strategy::concurrent, Strategy::threaded};

void require(bool good, const std::string& complaint) {
  if (!good) throw std::runtime_error(complaint);
}

// `nothing_new`: also checks that start, test and wait allocate nothing. MPI itself is C.
void exchange(MessagePlan& plan, test::MessageSet& set, Strategy strategy, int iteration,
              bool nothing_new) {
  set.fill(iteration);
  mpi::barrier(mpi::comm_world());
  const long before = allocations.load();
  plan.start(strategy);
  for (int i = 0; i < iteration && !plan.test(); ++i) std::this_thread::yield();
  plan.wait();
  const long after = allocations.load();
  const std::string complaint = set.check(iteration);
  require(complaint.empty(), std::string(name(strategy)) + ": " + complaint);
  require(!nothing_new || after == before,
          std::string(name(strategy)) + ": start, test or wait allocated");
}

void random_messages(const Communicator& world, int lanes, std::size_t most_bytes, int messages) {
  const EndpointOptions options{
      .lanes = lanes, .threads = true, .pin = true, .split_bytes = std::size_t{64} << 10};
  EndpointSet endpoints(world, options);
  test::MessageSet set(static_cast<unsigned>(lanes), world.size(), world.rank(),
                       {.messages = messages, .most_bytes = most_bytes, .lanes = lanes});
  MessagePlan plan = endpoints.plan(set.messages());
  for (int iteration = 0; iteration < 3; ++iteration) {
    for (const Strategy strategy : strategies) {
      exchange(plan, set, strategy, iteration, iteration > 0);
    }
  }
}

void own_threads(const Communicator& world, int lanes) {
  EndpointSet endpoints(world, {.lanes = lanes, .threads = false, .split_bytes = 1000});
  test::MessageSet set(5, world.size(), world.rank(),
                       {.messages = 3 * world.size(), .most_bytes = 100000, .lanes = lanes});
  MessagePlan plan = endpoints.plan(set.messages());
  set.fill(1);
  mpi::barrier(mpi::comm_world());
  std::vector<std::thread> team;
  for (int lane = 0; lane < lanes; ++lane) {
    team.emplace_back([&plan, lane] { plan.exchange_lane(lane); });
  }
  for (std::thread& thread : team) thread.join();
  require(set.check(1).empty(), "own threads: " + set.check(1));
}

void many_sets(const Communicator& world, int times) {
  for (int i = 0; i < times; ++i) {
    EndpointSet endpoints(world, {.lanes = 1 + i % 3});
    int token = world.rank();
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();
    int got = -1;
    MessagePlan plan = endpoints.plan({{Message::Kind::send, &token, sizeof(token), next, 2},
                                       {Message::Kind::receive, &got, sizeof(got), previous, 2}});
    plan.start(strategies[i % 3]);
    plan.wait();
    require(got == previous, "many sets: a wrong token");
  }
}

// Every rank gives up; some have started. What is in flight must not hang the end of the set.
void giving_up(const Communicator& world, Strategy strategy, int starters) {
  std::vector<std::vector<std::byte>> buffers;
  std::vector<Message> messages;
  constexpr std::size_t bytes = 300'000;  // no MPI sends that much eagerly
  for (int peer = 0; peer < world.size(); ++peer) {
    for (const auto kind : {Message::Kind::receive, Message::Kind::send}) {
      buffers.emplace_back(bytes);
      messages.push_back({kind, buffers.back().data(), bytes, peer, 1});
    }
  }
  try {
    EndpointSet endpoints(world, {.lanes = 2, .split_bytes = 100'000});
    MessagePlan plan = endpoints.plan(messages);
    if (world.rank() < starters) plan.start(strategy);
    throw std::runtime_error("giving up");
  } catch (const std::runtime_error& error) {
    require(error.what() == std::string("giving up"), error.what());
  }
}

void joint_error(const Communicator& world) {
  const int last = world.size() - 1;
  try {
    EndpointSet endpoints(world, {.lanes = world.rank() == last ? 99 : 1});
  } catch (const Error& error) {
    const std::string start = "lanes: 99 on rank " + std::to_string(last);
    require(std::string(error.what()).rfind(start, 0) == 0, error.what());
    return;
  }
  throw std::runtime_error("bad lanes: no error");
}

// As many as the launcher was told (--lanes), and others.
std::vector<int> lane_counts(bool few) {
  std::vector<int> counts = few ? std::vector<int>{1, 2, 3} : std::vector<int>{2};
  const char* told = std::getenv("ROPEWALK_LANES");
  if (told != nullptr) counts.push_back(std::stoi(told));
  return counts;
}

void run(const Communicator& world) {
  const bool few = world.size() <= 4;  // beyond, ranks outnumber the cores of a small machine
  joint_error(world);
  for (const int lanes : lane_counts(few)) {
    random_messages(world, lanes, few ? std::size_t{4} << 20 : std::size_t{200} << 10,
                    few ? 10 : 2 * world.size());
  }
  own_threads(world, 2);
  many_sets(world, few ? 40 : 6);
  for (const Strategy strategy : strategies) {
    if (few) giving_up(world, strategy, world.size());
    giving_up(world, strategy, 1);
  }
}

}  // namespace

int main() {
  try {
    const Process process;
    try {
      run(process.world());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", process.world().rank(), error.what());
      mpi::abort(1);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
