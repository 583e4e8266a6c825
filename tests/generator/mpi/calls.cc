// One call of MPI from arguments that suit all of them.
#include <dlfcn.h>

#include "generator/mpi/run.hpp"

namespace generator {
namespace {

const int* pointer(const std::vector<int>& numbers) {
  return numbers.empty() ? nullptr : numbers.data();
}

// Those of MPI 4, looked up: the MPI compiled against may not declare them.
template <class... Arguments>
int large(const char* name, Arguments... arguments) {
  auto* function = reinterpret_cast<int (*)(Arguments...)>(dlsym(RTLD_DEFAULT, name));
  return function == nullptr ? MPI_ERR_INTERN : function(arguments...);
}

template <class Number>
struct Numbers {
  explicit Numbers(const std::vector<int>& from) : numbers(from.begin(), from.end()) {}
  const Number* pointer() const { return numbers.empty() ? nullptr : numbers.data(); }
  std::vector<Number> numbers;
};

int make_large(const Call& call) {
  const Argument& s = call.send;
  const Argument& r = call.receive;
  const void* from = s.data;
  const MPI_Count n = s.count;
  const MPI_Count m = r.count;
  const Numbers<MPI_Count> s_counts(s.counts);
  const Numbers<MPI_Count> r_counts(r.counts);
  const Numbers<MPI_Aint> s_places(s.displacements);
  const Numbers<MPI_Aint> r_places(r.displacements);
  const auto ns = s_counts.pointer();
  const auto ms = r_counts.pointer();
  const auto ds = s_places.pointer();
  const auto es = r_places.pointer();
  switch (call.collective) {
    case Collective::barrier:
      return MPI_Barrier(call.comm);
    case Collective::bcast:
      return large("MPI_Bcast_c", r.data, m, r.type, call.root, call.comm);
    case Collective::reduce:
      return large("MPI_Reduce_c", from, r.data, m, r.type, call.op, call.root, call.comm);
    case Collective::allreduce:
      return large("MPI_Allreduce_c", from, r.data, m, r.type, call.op, call.comm);
    case Collective::scan:
      return large("MPI_Scan_c", from, r.data, m, r.type, call.op, call.comm);
    case Collective::exscan:
      return large("MPI_Exscan_c", from, r.data, m, r.type, call.op, call.comm);
    case Collective::reduce_scatter:
      return large("MPI_Reduce_scatter_c", from, r.data, ms, r.type, call.op, call.comm);
    case Collective::reduce_scatter_block:
      return large("MPI_Reduce_scatter_block_c", from, r.data, m, r.type, call.op, call.comm);
    case Collective::allgather:
      return large("MPI_Allgather_c", from, n, s.type, r.data, m, r.type, call.comm);
    case Collective::allgatherv:
      return large("MPI_Allgatherv_c", from, n, s.type, r.data, ms, es, r.type, call.comm);
    case Collective::gather:
      return large("MPI_Gather_c", from, n, s.type, r.data, m, r.type, call.root, call.comm);
    case Collective::gatherv:
      return large("MPI_Gatherv_c", from, n, s.type, r.data, ms, es, r.type, call.root, call.comm);
    case Collective::scatter:
      return large("MPI_Scatter_c", from, n, s.type, r.data, m, r.type, call.root, call.comm);
    case Collective::scatterv:
      return large("MPI_Scatterv_c", from, ns, ds, s.type, r.data, m, r.type, call.root, call.comm);
    case Collective::alltoall:
      return large("MPI_Alltoall_c", from, n, s.type, r.data, m, r.type, call.comm);
    case Collective::alltoallv:
      return large("MPI_Alltoallv_c", from, ns, ds, s.type, r.data, ms, es, r.type, call.comm);
  }
  return MPI_ERR_INTERN;
}

#define EITHER(name) (plain ? PMPI_##name : MPI_##name)

int make_plain(const Call& call, bool plain) {
  const Argument& s = call.send;
  const Argument& r = call.receive;
  const auto n = pointer(s.counts);
  const auto m = pointer(r.counts);
  const auto d = pointer(s.displacements);
  const auto e = pointer(r.displacements);
  switch (call.collective) {
    case Collective::barrier:
      return EITHER(Barrier)(call.comm);
    case Collective::bcast:
      return EITHER(Bcast)(r.data, r.count, r.type, call.root, call.comm);
    case Collective::reduce:
      return EITHER(Reduce)(s.data, r.data, r.count, r.type, call.op, call.root, call.comm);
    case Collective::allreduce:
      return EITHER(Allreduce)(s.data, r.data, r.count, r.type, call.op, call.comm);
    case Collective::scan:
      return EITHER(Scan)(s.data, r.data, r.count, r.type, call.op, call.comm);
    case Collective::exscan:
      return EITHER(Exscan)(s.data, r.data, r.count, r.type, call.op, call.comm);
    case Collective::reduce_scatter:
      return EITHER(Reduce_scatter)(s.data, r.data, m, r.type, call.op, call.comm);
    case Collective::reduce_scatter_block:
      return EITHER(Reduce_scatter_block)(s.data, r.data, r.count, r.type, call.op, call.comm);
    case Collective::allgather:
      return EITHER(Allgather)(s.data, s.count, s.type, r.data, r.count, r.type, call.comm);
    case Collective::allgatherv:
      return EITHER(Allgatherv)(s.data, s.count, s.type, r.data, m, e, r.type, call.comm);
    case Collective::gather:
      return EITHER(Gather)(s.data, s.count, s.type, r.data, r.count, r.type, call.root, call.comm);
    case Collective::gatherv:
      return EITHER(Gatherv)(s.data, s.count, s.type, r.data, m, e, r.type, call.root, call.comm);
    case Collective::scatter:
      return EITHER(Scatter)(s.data, s.count, s.type, r.data, r.count, r.type, call.root,
                             call.comm);
    case Collective::scatterv:
      return EITHER(Scatterv)(s.data, n, d, s.type, r.data, r.count, r.type, call.root, call.comm);
    case Collective::alltoall:
      return EITHER(Alltoall)(s.data, s.count, s.type, r.data, r.count, r.type, call.comm);
    case Collective::alltoallv:
      return EITHER(Alltoallv)(s.data, n, d, s.type, r.data, m, e, r.type, call.comm);
  }
  return MPI_ERR_INTERN;
}

// Open MPI 5.0.11 writes beyond its memory in rings of types with data before their address. The
// last rank has the same from a scan.
int allreduce_by_scan(const Call& call) {
  const Argument& r = call.receive;
  const int code = PMPI_Scan(call.send.data, r.data, r.count, r.type, call.op, call.comm);
  if (code != MPI_SUCCESS) return code;
  return PMPI_Bcast(r.data, r.count, r.type, test::size_of(call.comm) - 1, call.comm);
}

}  // namespace

bool has_large() { return dlsym(RTLD_DEFAULT, "MPI_Alltoallv_c") != nullptr; }

int call_pmpi(const Call& call) {
  const bool by_scan = call.collective == Collective::allreduce && call.drawn->before_buffer;
  return by_scan ? allreduce_by_scan(call) : make_plain(call, true);
}

int call_mpi(const Call& call) {
  return call.drawn->large ? make_large(call) : make_plain(call, false);
}

}  // namespace generator
