// Nonblocking collectives of thread_mpi: the nth of every member belong together, whoever is first.
#include "mpi/library.hpp"
#include "support/thread_mpi_world.hpp"

namespace ropewalk::test {
namespace {

// Set while the blocking form of a function is called for the nonblocking one.
thread_local Word* wanted = nullptr;

template <class Function>
struct Starter;
template <class... Arguments>
struct Starter<int (*mpi::Functions::*)(Arguments...)> {
  template <auto blocking>
  static int start(Arguments... arguments, Word* request) {
    wanted = request;
    const int code = (mpi::library().call.*blocking)(arguments...);
    wanted = nullptr;
    return code;
  }
};
template <auto blocking>
constexpr auto started = &Starter<decltype(blocking)>::template start<blocking>;

void execute_started(World& world, Communicator& c, const Execute& execute, const Started& call) {
  std::vector<Part*> parts;
  for (const auto& part : call.parts) parts.push_back(part.get());
  const int result = execute(world, c, parts);
  for (const RequestPointer& request : call.requests) {
    request->error = result;
    request->complete = true;
  }
}

}  // namespace

Word* request_wanted() { return wanted; }

int start_collective(const char* function, Word comm, const Part& part, const Execute& execute,
                     Word* request) {
  return on_communicator(function, comm, [&](Here& here, const CommunicatorPointer& c, int me) {
    World& world = here.world;
    const auto member = static_cast<std::size_t>(me);
    const std::uint64_t number = c->started[member]++;
    Started& call = c->pending[number];
    if (call.arrived == 0) {
      call.function = function;
      call.parts.resize(c->members.size());
      call.requests.resize(c->members.size());
    }
    if (call.function != function) {
      world.stop("rank " + std::to_string(me) + " starts " + function + " while others start " +
                 call.function);
      return world.stopped_code;
    }
    call.parts[member] = std::make_unique<Part>(part);
    call.requests[member] = std::make_shared<RequestState>();
    *request = keep(world, call.requests[member]);
    if (++call.arrived < call.parts.size()) return 0;
    execute_started(world, *c, execute, call);
    c->pending.erase(number);
    world.changed();
    return 0;
  });
}

void fill_nonblocking_collectives(mpi::Functions& call) {
  call.ibarrier = started<&mpi::Functions::barrier>;
  call.ibcast = started<&mpi::Functions::bcast>;
  call.iallgather = started<&mpi::Functions::allgather>;
  call.iallgatherv = started<&mpi::Functions::allgatherv>;
  call.igather = started<&mpi::Functions::gather>;
  call.igatherv = started<&mpi::Functions::gatherv>;
  call.iscatter = started<&mpi::Functions::scatter>;
  call.iscatterv = started<&mpi::Functions::scatterv>;
  call.ialltoall = started<&mpi::Functions::alltoall>;
  call.ialltoallv = started<&mpi::Functions::alltoallv>;
  call.ireduce = started<&mpi::Functions::reduce>;
  call.iallreduce = started<&mpi::Functions::allreduce>;
  call.ireduce_scatter = started<&mpi::Functions::reduce_scatter>;
  call.ireduce_scatter_block = started<&mpi::Functions::reduce_scatter_block>;
  call.iscan = started<&mpi::Functions::scan>;
  call.iexscan = started<&mpi::Functions::exscan>;
}

void fill_large_nonblocking_collectives(mpi::Functions& call) {
  call.ibcast_c = started<&mpi::Functions::bcast_c>;
  call.iallgather_c = started<&mpi::Functions::allgather_c>;
  call.iallgatherv_c = started<&mpi::Functions::allgatherv_c>;
  call.igather_c = started<&mpi::Functions::gather_c>;
  call.igatherv_c = started<&mpi::Functions::gatherv_c>;
  call.iscatter_c = started<&mpi::Functions::scatter_c>;
  call.iscatterv_c = started<&mpi::Functions::scatterv_c>;
  call.ialltoall_c = started<&mpi::Functions::alltoall_c>;
  call.ialltoallv_c = started<&mpi::Functions::alltoallv_c>;
  call.ireduce_c = started<&mpi::Functions::reduce_c>;
  call.iallreduce_c = started<&mpi::Functions::allreduce_c>;
  call.ireduce_scatter_c = started<&mpi::Functions::reduce_scatter_c>;
  call.ireduce_scatter_block_c = started<&mpi::Functions::reduce_scatter_block_c>;
  call.iscan_c = started<&mpi::Functions::scan_c>;
  call.iexscan_c = started<&mpi::Functions::exscan_c>;
}

}  // namespace ropewalk::test
