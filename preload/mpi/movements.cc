// This file has the movements of equal blocks, and the barrier.
#include "call.hpp"
#include "pass.hpp"
#include "sides.hpp"

namespace ropewalk::preload {
namespace {

namespace typed = collectives::typed;
using collectives::is_in_place;

template <class Number>
std::size_t bytes_of(Number count, Word type) {
  if (statistics == Statistics::off) [[likely]] {
    return 0;
  }
  const Side side(nullptr, count, type);
  return side.usable() ? side.buffer().count * side.buffer().elements.bytes : 0;
}

bool is_rank(const Collectives& team, int rank) { return rank >= 0 && rank < team.size(); }

template <class Number>
int bcast(void* data, Number count, Word type, int root, Word comm) {
  const auto call = [&] { return pass::bcast(data, count, type, root, comm); };
  return serve_or_pass(
      Function::bcast, bytes_of(count, type), comm,
      [&](Collectives& team) {
        const Side side(data, count, type);
        if (!side.usable() || !is_rank(team, root)) return false;
        typed::broadcast(team, side.buffer(), root);
        return true;
      },
      call, call);
}

template <class Number>
int allgather(const void* send, Number send_count, Word send_type, void* receive,
              Number receive_count, Word receive_type, Word comm) {
  const auto call = [&] {
    return pass::allgather(send, send_count, send_type, receive, receive_count, receive_type, comm);
  };
  return serve_or_pass(
      Function::allgather, bytes_of(receive_count, receive_type), comm,
      [&](Collectives& team) {
        const Side to(receive, receive_count, receive_type);
        const auto with = [&](const Side& from) {
          if (!from.usable() || !to.usable()) return false;
          typed::allgather(team, from.buffer(), to.buffer());
          return true;
        };
        return is_in_place(send) ? with(Side(send)) : with(Side(send, send_count, send_type));
      },
      call, call);
}

template <class Number>
int gather(const void* send, Number send_count, Word send_type, void* receive, Number receive_count,
           Word receive_type, int root, Word comm) {
  const auto call = [&] {
    return pass::gather(send, send_count, send_type, receive, receive_count, receive_type, root,
                        comm);
  };
  const bool stays = is_in_place(send);
  return serve_or_pass(
      Function::gather, stays ? 0 : bytes_of(send_count, send_type), comm,
      [&](Collectives& team) {
        if (!is_rank(team, root)) return false;
        const auto with = [&](const Side& from, const Side& to) {
          if (!from.usable() || !to.usable()) return false;
          typed::gather(team, from.buffer(), to.buffer(), root);
          return true;
        };
        const auto into = [&](const Side& to) {
          return stays ? with(Side(send), to) : with(Side(send, send_count, send_type), to);
        };
        return team.rank() == root ? into(Side(receive, receive_count, receive_type))
                                   : into(Side());
      },
      call, call);
}

template <class Number>
int scatter(const void* send, Number send_count, Word send_type, void* receive,
            Number receive_count, Word receive_type, int root, Word comm) {
  const auto call = [&] {
    return pass::scatter(send, send_count, send_type, receive, receive_count, receive_type, root,
                         comm);
  };
  const bool stays = is_in_place(receive);
  return serve_or_pass(
      Function::scatter, stays ? 0 : bytes_of(receive_count, receive_type), comm,
      [&](Collectives& team) {
        if (!is_rank(team, root)) return false;
        const auto with = [&](const Side& from, const Side& to) {
          if (!from.usable() || !to.usable()) return false;
          typed::scatter(team, from.buffer(), to.buffer(), root);
          return true;
        };
        const auto from = [&](const Side& to) {
          return team.rank() == root ? with(Side(send, send_count, send_type), to)
                                     : with(Side(), to);
        };
        return stays ? from(Side(receive)) : from(Side(receive, receive_count, receive_type));
      },
      call, call);
}

template <class Number>
int alltoall(const void* send, Number send_count, Word send_type, void* receive,
             Number receive_count, Word receive_type, Word comm) {
  const auto call = [&] {
    return pass::alltoall(send, send_count, send_type, receive, receive_count, receive_type, comm);
  };
  const bool stays = is_in_place(send);
  return serve_or_pass(
      Function::alltoall, bytes_of(receive_count, receive_type), comm,
      [&](Collectives& team) {
        const Side to(receive, receive_count, receive_type);
        const auto with = [&](const Side& from) {
          if (!from.usable() || !to.usable()) return false;
          typed::alltoall(team, from.buffer(), to.buffer());
          return true;
        };
        return stays ? with(Side(send)) : with(Side(send, send_count, send_type));
      },
      call, [&] { return stays ? -1 : call(); });
}

}  // namespace

namespace serve {

int Barrier(Word comm) {
  const auto call = [&] { return next.Barrier(comm); };
  return serve_or_pass(
      Function::barrier, 0, comm,
      [](Collectives& team) {
        team.barrier();
        if (!windows_made) progress();  // else it follows
        return true;
      },
      call, call);
}
int Bcast(void* data, int count, Word type, int root, Word comm) {
  return bcast(data, count, type, root, comm);
}
int Bcast_c(void* data, Count count, Word type, int root, Word comm) {
  return bcast(data, count, type, root, comm);
}

#define ROPEWALK_ALL(name, lower, Number)                                                  \
  int name(const void* send, Number send_count, Word send_type, void* receive,             \
           Number receive_count, Word receive_type, Word comm) {                           \
    return lower(send, send_count, send_type, receive, receive_count, receive_type, comm); \
  }
ROPEWALK_ALL(Allgather, allgather, int)
ROPEWALK_ALL(Allgather_c, allgather, Count)
ROPEWALK_ALL(Alltoall, alltoall, int)
ROPEWALK_ALL(Alltoall_c, alltoall, Count)

#define ROPEWALK_ROOTED(name, lower, Number)                                                     \
  int name(const void* send, Number send_count, Word send_type, void* receive,                   \
           Number receive_count, Word receive_type, int root, Word comm) {                       \
    return lower(send, send_count, send_type, receive, receive_count, receive_type, root, comm); \
  }
ROPEWALK_ROOTED(Gather, gather, int)
ROPEWALK_ROOTED(Gather_c, gather, Count)
ROPEWALK_ROOTED(Scatter, scatter, int)
ROPEWALK_ROOTED(Scatter_c, scatter, Count)

}  // namespace serve
}  // namespace ropewalk::preload
