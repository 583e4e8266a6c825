// This file is the C interface of this room.
#include "c_call.hpp"
#include "halo/c_halo.hpp"
#include "mpi/c_out.hpp"
#include "ropewalk/schedule.hpp"

struct rw_stealing {
  ropewalk::WorkStealing loop;
};

struct rw_team {
  ropewalk::ThreadTeam team;
};

using ropewalk::c_call;
using ropewalk::require_argument;

extern "C" {

int rw_stealing_create(size_t iterations, int workers, int communicating_workers, size_t block,
                       rw_stealing** out) {
  return c_call([&] {
    require_argument(out, "out");
    *out =
        new rw_stealing{ropewalk::WorkStealing(iterations, workers, communicating_workers, block)};
  });
}

int rw_stealing_next(rw_stealing* loop, int worker, size_t* begin, size_t* end) {
  return c_call([&] {
    require_argument(loop, "loop");
    require_argument(begin, "begin");
    require_argument(end, "end");
    const ropewalk::IterationRange range = loop->loop.next(worker);
    *begin = range.begin;
    *end = range.end;
  });
}

int rw_stealing_reset(rw_stealing* loop) {
  return c_call([&] {
    require_argument(loop, "loop");
    loop->loop.reset();
  });
}

int rw_stealing_free(rw_stealing* loop) {
  return c_call([&] { delete loop; });
}

int rw_team_create(rw_mpi_comm comm, int threads, int pin, rw_team** out) {
  return c_call([&] {
    ropewalk::mpi::require_out({comm}, out);
    const ropewalk::ThreadTeamOptions options{threads, pin != 0};
    *out = new rw_team{ropewalk::ThreadTeam(ropewalk::Communicator(comm), options)};
  });
}

int rw_team_size(const rw_team* team, int* out) {
  return c_call([&] {
    require_argument(team, "team");
    require_argument(out, "out");
    *out = team->team.size();
  });
}

int rw_team_run(rw_team* team, rw_worker_function task, void* user) {
  return c_call([&] {
    require_argument(team, "team");
    require_argument(reinterpret_cast<const void*>(task), "task");
    team->team.run([&](int worker) { task(user, worker); });
  });
}

int rw_team_barrier(rw_team* team) {
  return c_call([&] {
    require_argument(team, "team");
    team->team.barrier();
  });
}

int rw_team_free(rw_team* team) {
  return c_call([&] { delete team; });
}

int rw_overlap(rw_team* team, rw_stealing* loop, rw_worker_function faces, rw_halo* halo,
               rw_range_function interior, rw_worker_function boundary, void* user) {
  return c_call([&] {
    require_argument(team, "team");
    require_argument(loop, "loop");
    require_argument(halo, "halo");
    require_argument(reinterpret_cast<const void*>(interior), "interior");
    const auto phase = [user](rw_worker_function function) {
      return [user, function](int worker) {
        if (function != nullptr) function(user, worker);
      };
    };
    ropewalk::parallel_overlap(
        team->team, loop->loop, phase(faces), halo->halo,
        [&](std::size_t begin, std::size_t end) { interior(user, begin, end); }, phase(boundary));
  });
}

}  // extern "C"
