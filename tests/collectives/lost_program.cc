// lost_program RANK: that rank is killed in the middle of its collectives.
// lost_program RANK cut|kill COMMAND: its node is cut off or killed, in a box of one rank a node,
// by rank 0 with the `ropewalk` command.
//
// The others must get an error that names it from every kind of call, on communicators that were
// made before, and again at the next call; then they print one line that lost.py counts. They never
// call MPI_Finalize, where an MPI may wait for the dead.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/endpoint.hpp"
#include "ropewalk/process.hpp"

namespace {

using namespace ropewalk;

int victim = 0;
constexpr int survivor = 0;
int rank = 0;
std::string fault;    // "cut", "kill", or none
std::string command;  // `ropewalk`
bool good = true;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  good = false;
  std::printf("rank %d: WRONG: %s\n", rank, what.c_str());
}

// Calls until it throws, and once more.
void expect_error(const std::string& name, const std::function<void()>& call) {
  for (int again = 0; again < 2; ++again) {
    try {
      for (int calls = 0; calls < 1000 * 1000; ++calls) call();
      expect(false, name + ": no error");
    } catch (const Error& error) {
      const std::string who = "rank " + std::to_string(victim) + " on node ";
      expect(error.code() == ErrorCode::peer_dead &&
                 std::string(error.what()).find(who) != std::string::npos,
             name + ": " + error.what());
    }
  }
}

// A kind of call, on a communicator of its own.
struct Kind {
  const char* name;
  std::function<void(Collectives&)> call;
};

std::vector<Kind> kinds() {
  auto numbers = std::make_shared<std::vector<double>>(200000, 1.0);
  auto results = std::make_shared<std::vector<double>>(800000, 0.0);
  const auto allreduce = [=](Collectives& on, std::size_t count) {
    on.allreduce(numbers->data(), results->data(), count, ElementType::float64, ReductionOp::sum);
  };
  const auto sizes = [](Collectives& on, std::size_t bytes) {
    return std::vector<std::size_t>(static_cast<std::size_t>(on.size()), bytes);
  };
  const auto places = [](Collectives& on, std::size_t bytes) {
    std::vector<std::size_t> all;
    for (int other = 0; other < on.size(); ++other) {
      all.push_back(static_cast<std::size_t>(other) * bytes);
    }
    return all;
  };
  return {
      {"barrier", [](Collectives& on) { on.barrier(); }},
      {"alltoall", [=](Collectives& on) { on.alltoall(numbers->data(), results->data(), 8000); }},
      {"small allreduce", [=](Collectives& on) { allreduce(on, 1); }},
      {"large allreduce", [=](Collectives& on) { allreduce(on, 200000); }},
      {"broadcast of the dead",
       [=](Collectives& on) { on.broadcast(results->data(), 1000000, victim); }},
      {"allgather", [=](Collectives& on) { on.allgather(numbers->data(), results->data(), 4000); }},
      // Left to MPI, by their size or always.
      {"allreduce between leaders", [=](Collectives& on) { allreduce(on, 4000); }},
      {"reduce",
       [=](Collectives& on) {
         on.reduce(numbers->data(), results->data(), 100, ElementType::float64, ReductionOp::sum,
                   survivor);
       }},
      {"scan",
       [=](Collectives& on) {
         on.scan(numbers->data(), results->data(), 1000, ElementType::float64, ReductionOp::sum);
       }},
      {"reduce_scatter",
       [=](Collectives& on) {
         on.reduce_scatter_block(numbers->data(), results->data(), 10, ElementType::float64,
                                 ReductionOp::sum);
       }},
      {"small broadcast of the dead",
       [=](Collectives& on) { on.broadcast(results->data(), 100, victim); }},
      {"small allgather",
       [=](Collectives& on) { on.allgather(numbers->data(), results->data(), 8); }},
      {"large alltoall",
       [=](Collectives& on) { on.alltoall(numbers->data(), results->data(), 100000); }},
      {"alltoallv",
       [=](Collectives& on) {
         on.alltoallv(numbers->data(), sizes(on, 100).data(), places(on, 100).data(),
                      results->data(), sizes(on, 100).data(), places(on, 100).data());
       }},
      {"scatter of the dead",
       [=](Collectives& on) { on.scatter(numbers->data(), results->data(), 100, victim); }},
      {"gather",
       [=](Collectives& on) { on.gather(numbers->data(), results->data(), 100, survivor); }}};
}

// Tells whether the reduction goes in pieces, by lanes or by communicators of their owners.
bool is_reduction_in_pieces(const Kind& kind) {
  const std::string name = kind.name;
  return name == "large allreduce" || name == "allreduce between leaders";
}

// Everybody exchanges messages with everybody.
struct Exchange {
  std::vector<double> sent = std::vector<double>(100000, 1.0);
  std::vector<std::vector<double>> received;
  EndpointSet endpoints;
  MessagePlan plan;

  explicit Exchange(bool threads)
      : endpoints(Communicator::world(), {.lanes = 2, .threads = threads}), plan(make_plan()) {}
  MessagePlan make_plan() {
    std::vector<Message> messages;
    received.resize(static_cast<std::size_t>(endpoints.size()));
    for (int peer = 0; peer < endpoints.size(); ++peer) {
      if (peer == rank) continue;
      auto& in = received[static_cast<std::size_t>(peer)];
      in.resize(sent.size());
      const std::size_t bytes = sent.size() * sizeof(double);
      messages.push_back({Message::Kind::receive, in.data(), bytes, peer, 1});
      messages.push_back({Message::Kind::send, sent.data(), bytes, peer, 1});
    }
    return endpoints.plan(messages);
  }
  void run(Strategy strategy) {
    plan.start(strategy);
    plan.wait();
  }
};

constexpr Strategy strategies[] = {Strategy::threaded, Strategy::concurrent, Strategy::sequential};

void live() {
  const std::vector<Kind> calls = kinds();
  std::vector<std::unique_ptr<Collectives>> communicators;
  std::size_t by_mpi = 0;
  for (const Kind& kind : calls) {
    auto made = std::make_unique<Collectives>(Communicator::world());
    kind.call(*made);
    by_mpi += made->last_path() == Path::mpi ? 1U : 0U;
    communicators.push_back(std::move(made));
  }
  expect(by_mpi > 0 && by_mpi < calls.size(), std::to_string(by_mpi) + " calls are left to MPI");
  // Their first call is one that a rank does not come to.
  std::vector<std::unique_ptr<Collectives>> fresh;
  for (const Kind& kind : calls) {
    if (!is_reduction_in_pieces(kind)) continue;
    fresh.push_back(std::make_unique<Collectives>(Communicator::world()));
  }
  std::vector<std::unique_ptr<Exchange>> exchanges;
  for (const Strategy strategy : strategies) {
    exchanges.push_back(std::make_unique<Exchange>(strategy == Strategy::threaded));
    exchanges.back()->run(strategy);
  }
  // Nobody is in a call of MPI's when a node goes.
  char ready = 1;
  if (rank > 0) mpi::send(&ready, 1, 0, 7, mpi::comm_world());
  for (int other = 1; rank == 0 && other < mpi::size(mpi::comm_world()); ++other) {
    mpi::receive(&ready, 1, other, 7, mpi::comm_world());
  }
  if (!fault.empty() && rank == 0) {
    const std::string line = command + " cluster --" + fault + " n" + std::to_string(victim);
    expect(std::system(line.c_str()) == 0, line);
  }
  if (rank == victim) {
    while (!fault.empty()) pause();
    std::signal(SIGALRM, SIG_DFL);
    ualarm(50000, 0);
    for (;;) {
      for (std::size_t k = 0; k < calls.size(); ++k) calls[k].call(*communicators[k]);
    }
  }
  std::size_t i = 0;
  for (const Kind& kind : calls) {
    Collectives& on = *communicators[i++];
    expect_error(kind.name, [&] { kind.call(on); });
  }
  i = 0;
  for (const Kind& kind : calls) {
    if (!is_reduction_in_pieces(kind)) continue;
    Collectives& on = *fresh[i++];
    expect_error(std::string("first ") + kind.name, [&] { kind.call(on); });
  }
  i = 0;
  for (const Strategy strategy : strategies) {
    Exchange& exchange = *exchanges[i++];
    expect_error("plan", [&] { exchange.run(strategy); });
  }
  // Their ends must not wait for the dead.
}

}  // namespace

int main(int argc, char** argv) {
  victim = argc > 1 ? std::atoi(argv[1]) : 1;
  if (argc > 3) fault = argv[2], command = argv[3];
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  mpi::init(mpi::ThreadLevel::multiple);
  rank = mpi::rank(mpi::comm_world());
  try {
    live();
  } catch (const std::exception& error) {
    expect(false, error.what());
  }
  std::printf("rank %d: %s\n", rank, good ? "GOOD" : "BAD");
  std::fflush(stdout);
  // Who leaves first would be another that ends without MPI_Finalize: lost.py ends the job.
  for (;;) pause();
}
