// differential_program [--cases N] [--seed S] [--only K] [--verbose 1] makes random collectives
// through the C interface, and compares each with PMPI_X of the MPI underneath, byte for byte.
#include <stdexcept>

#include "generator/mpi/run.hpp"
#include "ropewalk/ropewalk.h"

namespace {

using namespace generator;
using Sizes = std::vector<std::size_t>;

// ---- ropewalk's communicators beside the MPI's

struct Made {
  MPI_Comm comm;
  rw_comm* own;
};
std::vector<Made> made;

void make_all(const Communicators& communicators) {
  for (const Comm& comm : communicators.all) {
    if (comm.handle == MPI_COMM_NULL) continue;
    rw_comm* own = nullptr;
    int direct = 0;
    if (rw_comm_create(RW_MPI_COMM(comm.handle), &own) != RW_SUCCESS ||
        rw_comm_direct(own, &direct) != RW_SUCCESS || direct == 0) {
      std::fprintf(stderr, "no direct collectives on %s: %s\n", comm.name.c_str(), rw_last_error());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    made.push_back({comm.handle, own});
  }
}

void free_all() {
  for (const Made& one : made) rw_comm_free(one.own);
  made.clear();
}

rw_comm* own(MPI_Comm comm) {
  for (const Made& one : made) {
    if (one.comm == comm) return one.own;
  }
  throw std::logic_error("a communicator that was not made");
}

// ---- ropewalk's numbers

rw_type own_number(MPI_Datatype type) {
  const std::pair<MPI_Datatype, rw_type> known[] = {
      {MPI_INT8_T, RW_INT8},
      {MPI_UINT8_T, RW_UINT8},
      {MPI_INT16_T, RW_INT16},
      {MPI_UINT16_T, RW_UINT16},
      {MPI_INT32_T, RW_INT32},
      {MPI_INT, RW_INT32},
      {MPI_UINT32_T, RW_UINT32},
      {MPI_INT64_T, RW_INT64},
      {MPI_UINT64_T, RW_UINT64},
      {MPI_FLOAT, RW_FLOAT32},
      {MPI_DOUBLE, RW_FLOAT64},
      {MPI_LONG_DOUBLE, RW_LONG_DOUBLE},
      {MPI_C_FLOAT_COMPLEX, RW_COMPLEX_FLOAT32},
      {MPI_C_DOUBLE_COMPLEX, RW_COMPLEX_FLOAT64},
      {MPI_C_BOOL, RW_BOOLEAN},
      {MPI_BYTE, RW_BYTE},
  };
  for (const auto& [handle, number] : known) {
    if (type == handle) return number;
  }
  return RW_MPI_TYPE(type);
}

rw_op own_number(const Call& call) {
  const bool known = call.drawn->own_numbers && call.drawn->op <= Operation::bxor;
  return known ? RW_FIRST_OP + static_cast<rw_op>(call.drawn->op) : RW_MPI_OP(call.op);
}

// ---- one call

// Holds an argument as the C interface takes it.
struct Passed {
  Passed(const Case& drawn, const Argument& from)
      : data(from.data == MPI_IN_PLACE && drawn.own_in_place ? RW_IN_PLACE : from.data),
        count(static_cast<std::size_t>(from.count)),
        all_counts(from.counts.begin(), from.counts.end()),
        all_displacements(from.displacements.begin(), from.displacements.end()),
        counts(all_counts.empty() ? nullptr : all_counts.data()),
        displacements(all_counts.empty() ? nullptr : all_displacements.data()) {}
  void* data;
  std::size_t count;
  Sizes all_counts;
  Sizes all_displacements;
  const std::size_t* counts;
  const std::size_t* displacements;
};

class Ours {
 public:
  explicit Ours(const Call& from)
      : call_(from),
        s_(*from.drawn, from.send),
        r_(*from.drawn, from.receive),
        type_(from.drawn->own_numbers ? own_number(from.receive.type)
                                      : RW_MPI_TYPE(from.receive.type)),
        op_(own_number(from)) {}

  int make() const {
    if (call_.collective == Collective::barrier) return either(rw_barrier, rw_ibarrier);
    return call_.drawn->reduces() ? reduce() : move();
  }

 private:
  // Makes the call now, or starts it and completes it.
  template <class Now, class Later, class... Arguments>
  int either(Now now, Later later, Arguments... arguments) const {
    rw_comm* const comm = own(call_.comm);
    if (!call_.drawn->nonblocking) return now(arguments..., comm);
    rw_request* request = nullptr;
    const int code = later(arguments..., comm, &request);
    if (code != RW_SUCCESS || !call_.drawn->tested) {
      return code != RW_SUCCESS ? code : rw_wait(&request);
    }
    int done = 0;
    int tested = RW_SUCCESS;
    while (tested == RW_SUCCESS && done == 0) {
      int flag = 0;
      PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, call_.comm, &flag, MPI_STATUS_IGNORE);
      tested = rw_test(&request, &done);
    }
    return tested;
  }

  int reduce() const {
    void* const from = s_.data;
    void* const to = r_.data;
    const std::size_t n = r_.count;
    switch (call_.collective) {
      case Collective::allreduce:
        return either(rw_allreduce, rw_iallreduce, from, to, n, type_, op_);
      case Collective::reduce:
        return either(rw_reduce, rw_ireduce, from, to, n, type_, op_, call_.root);
      case Collective::scan:
        return either(rw_scan, rw_iscan, from, to, n, type_, op_);
      case Collective::exscan:
        return either(rw_exscan, rw_iexscan, from, to, n, type_, op_);
      case Collective::reduce_scatter:
        return either(rw_reduce_scatter, rw_ireduce_scatter, from, to, r_.counts, type_, op_);
      default:
        return either(rw_reduce_scatter_block, rw_ireduce_scatter_block, from, to, n, type_, op_);
    }
  }

  int move() const {
    void* const from = s_.data;
    void* const to = r_.data;
    const int root = call_.root;
    const auto places = r_.displacements;
    switch (call_.collective) {
      case Collective::bcast:
        return either(rw_bcast, rw_ibcast, to, r_.count, type_, root);
      case Collective::allgather:
        return either(rw_allgather, rw_iallgather, from, to, s_.count, type_);
      case Collective::allgatherv:
        return either(rw_allgatherv, rw_iallgatherv, from, s_.count, to, r_.counts, places, type_);
      case Collective::gather:
        return either(rw_gather, rw_igather, from, to, s_.count, type_, root);
      case Collective::gatherv:
        return either(rw_gatherv, rw_igatherv, from, s_.count, to, r_.counts, places, type_, root);
      case Collective::scatter:
        return either(rw_scatter, rw_iscatter, from, to, r_.count, type_, root);
      case Collective::scatterv:
        return either(rw_scatterv, rw_iscatterv, from, s_.counts, s_.displacements, to, r_.count,
                      type_, root);
      case Collective::alltoall:
        return either(rw_alltoall, rw_ialltoall, from, to, s_.count, type_);
      default:
        return either(rw_alltoallv, rw_ialltoallv, from, s_.counts, s_.displacements, to, r_.counts,
                      places, type_);
    }
  }

  const Call& call_;
  Passed s_;
  Passed r_;
  rw_type type_;
  rw_op op_;
};

std::string make(const Call& call) {
  return Ours(call).make() == RW_SUCCESS ? "" : std::string("ropewalk: ") + rw_last_error();
}

// Takes memory of the arena, or of the C library.
Allocator memory() {
  return {[](std::size_t bytes, bool shared) {
            void* memory = shared ? nullptr : std::malloc(bytes);
            if (shared && rw_alloc(bytes, 0, &memory) != RW_SUCCESS) std::abort();
            return memory;
          },
          [](void* memory, std::size_t, bool shared) {
            if (shared) {
              rw_free(memory);
            } else {
              std::free(memory);
            }
          }};
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  test::end_after(240);
  test::expect(level == MPI_THREAD_MULTIPLE, "no MPI_THREAD_MULTIPLE");
  Limits limits{Interface::c};
  limits.communicators = Communicators::kinds;
  run_cases(options, {limits, 50, memory(), &make, &make_all, &free_all});
  const bool failed = test::any_failure();
  MPI_Finalize();
  return failed ? 1 : 0;
}
