// Timed loops over the columns; see calls.hpp.
#include "collectives/calls.hpp"

#include <algorithm>
#include <limits>

#include "collectives/data.hpp"
#include "collectives/state.hpp"
#include "common/timed_threads.hpp"
#include "mpi/datatypes.hpp"
#include "mpi/fallback.hpp"
#include "mpi/library.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::bench {
namespace {

// Rewriting, then the call alone is timed, with barriers of ropewalk's on both sides.
template <class Call>
double time_each(const Run& run, Call call) {
  double time = 0;
  for (int i = 0; i < run.iterations; ++i) {
    rewrite(run.shape, run.send, run.first + static_cast<Serial>(i));
    run.apart->barrier();
    const double begin = now_us();
    call();
    time += now_us() - begin;
    run.apart->barrier();
  }
  return std::max(0.0, time - run.iterations * clock_reading_us());
}

// The loops are instantiated for each collective, so that nothing is decided between two calls.
template <class Call>
double repeat(const Run& run, Call call) {
  if (run.rewritten && run.apart != nullptr) return time_each(run, call);
  const double begin = now_us();
  if (run.rewritten) {
    for (int i = 0; i < run.iterations; ++i) {
      rewrite(run.shape, run.send, run.first + static_cast<Serial>(i));
      call();
    }
  } else {
    for (int i = 0; i < run.iterations; ++i) call();
  }
  return now_us() - begin;
}

std::vector<std::size_t> part_counts(const CallShape& shape) {
  std::vector<std::size_t> counts;
  counts.reserve(static_cast<std::size_t>(shape.ranks));
  for (int part = 0; part < shape.ranks; ++part) {
    counts.push_back(shape.part_begin(part + 1) - shape.part_begin(part));
  }
  return counts;
}

// Describes equal blocks in the way of the forms ending in v. Every rank finds the same.
template <class Count>
struct EqualBlocks {
  std::vector<Count> counts;
  std::vector<Count> begins;

  EqualBlocks(std::size_t each, int ranks) {
    if (each * static_cast<std::size_t>(ranks) > std::size_t{std::numeric_limits<Count>::max()}) {
      throw CollectiveError(
          ErrorCode::argument,
          "--sizes: blocks whose displacements are no int, which MPI takes in these "
          "forms; give smaller sizes");
    }
    for (int rank = 0; rank < ranks; ++rank) {
      counts.push_back(static_cast<Count>(each));
      begins.push_back(static_cast<Count>(each * static_cast<std::size_t>(rank)));
    }
  }
};

// The bytes of one call of this rank, straight between the ranks' buffers.
class Bare {
 public:
  Bare(const Everybody& all, const CallShape& shape, kernels::Stores stores)
      : all_(all),
        shape_(shape),
        stores_(stores),
        n_(shape.count()),
        rank_(static_cast<std::size_t>(shape.rank)),
        begin_(shape.part_begin(shape.rank)),
        length_(shape.part_begin(shape.rank + 1) - begin_),
        inputs_(shape.ranks),
        outputs_(shape.ranks) {}

  void operator()() {
    switch (without_counts(shape_.op)) {
      case Op::barrier:
        return;
      case Op::allreduce:
      case Op::reduce:
      case Op::reduce_scatter:
        return reduce();
      case Op::bcast:
        return broadcast();
      case Op::allgather:
        for (std::size_t q = 0; q < ranks(); ++q) copy(all_.receive[rank_] + q * n_, all_.send[q]);
        return;
      case Op::alltoall:
        for (std::size_t q = 0; q < ranks(); ++q) {
          copy(all_.receive[rank_] + q * n_, all_.send[q] + rank_ * n_);
        }
        return;
      case Op::gather:
        return copy(all_.receive[0] + rank_ * n_, all_.send[rank_]);
      case Op::scatter:
        return copy(all_.receive[rank_], all_.send[0] + rank_ * n_);
      default:
        return;
    }
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(shape_.ranks); }
  void copy(float* to, const float* from) const {
    kernels::copy(to, from, n_ * sizeof(float), stores_);
  }

  // Slice of this rank, from all inputs to all outputs, to the root's, or to its own.
  void reduce() {
    int outputs = 0;
    for (std::size_t q = 0; q < ranks(); ++q) {
      inputs_[q] = all_.send[q] + begin_;
      if (shape_.op == Op::allreduce || (shape_.op == Op::reduce && q == 0)) {
        outputs_[static_cast<std::size_t>(outputs++)] = all_.receive[q] + begin_;
      }
    }
    if (shape_.op == Op::reduce_scatter) {
      outputs_[static_cast<std::size_t>(outputs++)] = all_.receive[rank_];
    }
    kernels::reduce(outputs_.data(), outputs, inputs_.data(), shape_.ranks, length_,
                    ElementType::float32, ReductionOp::sum, stores_);
  }

  void broadcast() {
    for (std::size_t q = 1; q < ranks(); ++q) outputs_[q - 1] = all_.receive[q] + begin_;
    kernels::copy(outputs_.data(), shape_.ranks - 1, all_.send[0] + begin_, length_ * sizeof(float),
                  stores_);
  }

  const Everybody& all_;
  CallShape shape_;
  kernels::Stores stores_;
  std::size_t n_;
  std::size_t rank_;
  std::size_t begin_;
  std::size_t length_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

}  // namespace

struct Plain::State {
  mpi::Comm comm;
  mpi::Datatype type = mpi::datatype(ElementType::float32);
  mpi::Op sum = mpi::op(ReductionOp::sum);
};

Plain::Plain(const Ranks&) : state_(new State{mpi::dup(mpi::comm_world())}) {}
Plain::~Plain() {
  try {
    mpi::free(state_->comm);
  } catch (const std::exception&) {
    // The results are out; what the MPI says at the end does not change them.
  }
}

Everybody everybody(const Ranks& ranks, Collectives& node, float* send, float* receive) {
  Everybody all;
  const Arena& arena = Arena::process();
  // Offsets are far below 2^53.
  const auto offsets = ranks.gather(std::vector<double>{
      static_cast<double>(arena.offset(send)), static_cast<double>(arena.offset(receive))});
  if (node.nodes() != 1) return all;
  const node::Team& team = node.state().backend->engine()->team();
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto at = [&](double offset) {
      return reinterpret_cast<float*>(team.base(rank) + static_cast<std::size_t>(offset));
    };
    all.send.push_back(at(offsets[rank][0]));
    all.receive.push_back(at(offsets[rank][1]));
  }
  return all;
}

std::vector<int> ranks_on_nodes(Collectives& node) {
  if (node.nodes() == 0) return {};
  if (node.nodes() == 1) return {node.size()};
  std::vector<int> ranks;
  for (const auto& members : node.state().backend->hierarchy()->layout().members) {
    ranks.push_back(static_cast<int>(members.size()));
  }
  return ranks;
}

namespace {

// The plain MPI is called without the fallback, which would make vectors of ints of the counts in
// every call.
double time_plain_blocks(const Plain::State& plain, const Run& run) {
  const auto& call = mpi::library().call;
  const auto comm = plain.comm.value;
  const auto type = plain.type.value;
  const CallShape& shape = run.shape;
  const auto n = static_cast<int>(shape.count());
  const EqualBlocks<int> blocks(shape.count(), shape.ranks);
  const int* const counts = blocks.counts.data();
  const int* const begins = blocks.begins.data();
  float* const s = run.send;
  float* const r = run.receive;
  switch (shape.op) {
    case Op::allgatherv:
      return repeat(run, [&] { call.allgatherv(s, n, type, r, counts, begins, type, comm); });
    case Op::alltoallv:
      return repeat(
          run, [&] { call.alltoallv(s, counts, begins, type, r, counts, begins, type, comm); });
    case Op::gatherv:
      return repeat(run, [&] { call.gatherv(s, n, type, r, counts, begins, type, 0, comm); });
    default:
      return repeat(run, [&] { call.scatterv(s, counts, begins, type, r, n, type, 0, comm); });
  }
}

double time_ropewalk_blocks(Collectives& node, const Run& run) {
  const CallShape& shape = run.shape;
  const EqualBlocks<std::size_t> blocks(shape.bytes, shape.ranks);
  const std::size_t* const counts = blocks.counts.data();
  const std::size_t* const begins = blocks.begins.data();
  float* const s = run.send;
  float* const r = run.receive;
  switch (shape.op) {
    case Op::allgatherv:
      return repeat(run, [&] { node.allgatherv(s, shape.bytes, r, counts, begins); });
    case Op::alltoallv:
      return repeat(run, [&] { node.alltoallv(s, counts, begins, r, counts, begins); });
    case Op::gatherv:
      return repeat(run, [&] { node.gatherv(s, shape.bytes, r, counts, begins, 0); });
    default:
      return repeat(run, [&] { node.scatterv(s, counts, begins, r, shape.bytes, 0); });
  }
}

}  // namespace

double time_plain(const Plain& plain, const Run& run) {
  namespace fallback = mpi::fallback;
  const mpi::Comm comm = plain.state().comm;
  const mpi::Datatype type = plain.state().type;
  const mpi::Op sum = plain.state().sum;
  const CallShape& shape = run.shape;
  const std::size_t n = shape.count();
  float* const s = run.send;
  float* const r = run.receive;
  switch (shape.op) {
    case Op::barrier:
      return repeat(run, [&] { mpi::barrier(comm); });
    case Op::allreduce:
      return repeat(run, [&] { fallback::allreduce(s, r, n, type, sum, comm); });
    case Op::reduce:
      return repeat(run, [&] { fallback::reduce(s, r, n, type, sum, 0, comm); });
    case Op::bcast:
      return repeat(run, [&] { fallback::broadcast(shape.rank == 0 ? s : r, n, type, 0, comm); });
    case Op::allgather:
      return repeat(run, [&] { fallback::allgather(s, n, type, r, n, type, comm); });
    case Op::alltoall:
      return repeat(run, [&] { fallback::alltoall(s, n, type, r, n, type, comm); });
    case Op::gather:
      return repeat(run, [&] { fallback::gather(s, n, type, r, n, type, 0, comm); });
    case Op::scatter:
      return repeat(run, [&] { fallback::scatter(s, n, type, r, n, type, 0, comm); });
    case Op::reduce_scatter: {
      // The plain MPI is called without the fallback, which would make a vector of ints of the
      // counts in every call.
      const std::vector<std::size_t> parts = part_counts(shape);
      const std::vector<int> counts(parts.begin(), parts.end());
      const auto call = mpi::library().call.reduce_scatter;
      return repeat(run, [&] { call(s, r, counts.data(), type.value, sum.value, comm.value); });
    }
    default:
      return time_plain_blocks(plain.state(), run);
  }
}

double time_ropewalk(Collectives& node, const Run& run) {
  constexpr auto type = ElementType::float32;
  constexpr auto sum = ReductionOp::sum;
  const CallShape& shape = run.shape;
  const std::size_t n = shape.count();
  float* const s = run.send;
  float* const r = run.receive;
  switch (shape.op) {
    case Op::barrier:
      return repeat(run, [&] { node.barrier(); });
    case Op::allreduce:
      return repeat(run, [&] { node.allreduce(s, r, n, type, sum); });
    case Op::reduce:
      return repeat(run, [&] { node.reduce(s, r, n, type, sum, 0); });
    case Op::bcast:
      return repeat(run, [&] { node.broadcast(shape.rank == 0 ? s : r, shape.bytes, 0); });
    case Op::allgather:
      return repeat(run, [&] { node.allgather(s, r, shape.bytes); });
    case Op::alltoall:
      return repeat(run, [&] { node.alltoall(s, r, shape.bytes); });
    case Op::gather:
      return repeat(run, [&] { node.gather(s, r, shape.bytes, 0); });
    case Op::scatter:
      return repeat(run, [&] { node.scatter(s, r, shape.bytes, 0); });
    case Op::reduce_scatter: {
      const auto counts = part_counts(shape);
      return repeat(run, [&] { node.reduce_scatter(s, r, counts.data(), type, sum); });
    }
    default:
      return time_ropewalk_blocks(node, run);
  }
}

double time_limit(const Everybody& all, const Run& run, kernels::Stores stores) {
  Bare bare(all, run.shape, stores);
  return repeat(run, [&] { bare(); });
}

double time_rewriting(const Run& run) {
  Run alone = run;
  alone.rewritten = true;
  alone.apart = nullptr;
  return repeat(alone, [] {});
}

}  // namespace ropewalk::bench
