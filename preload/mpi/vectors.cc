// This file has the movements of blocks of any size: MPI's functions that end in v.
#include "call.hpp"
#include "pass.hpp"
#include "sides.hpp"

namespace ropewalk::preload {
namespace {

namespace typed = collectives::typed;
using collectives::is_in_place;

bool is_rank(const Collectives& team, int rank) { return rank >= 0 && rank < team.size(); }

template <class Number>
int allgatherv(const void* send, Number send_count, Word send_type, void* receive,
               const Number* counts, const Number* displacements, Word receive_type, Word comm) {
  const auto call = [&] {
    return pass::allgatherv(send, send_count, send_type, receive, counts, displacements,
                            receive_type, comm);
  };
  return serve_or_pass(
      Function::allgatherv, 0, comm,
      [&](Collectives& team) {
        const Sides to(receive, counts, displacements, receive_type, team.size());
        const auto with = [&](const Side& from) {
          if (!from.usable() || !to.usable()) return false;
          typed::allgatherv(team, from.buffer(), to.buffers());
          return true;
        };
        return is_in_place(send) ? with(Side(send)) : with(Side(send, send_count, send_type));
      },
      call, call);
}

template <class Number>
int gatherv(const void* send, Number send_count, Word send_type, void* receive,
            const Number* counts, const Number* displacements, Word receive_type, int root,
            Word comm) {
  const auto call = [&] {
    return pass::gatherv(send, send_count, send_type, receive, counts, displacements, receive_type,
                         root, comm);
  };
  return serve_or_pass(
      Function::gatherv, 0, comm,
      [&](Collectives& team) {
        if (!is_rank(team, root)) return false;
        const auto with = [&](const Side& from, const Sides& to) {
          if (!from.usable() || !to.usable()) return false;
          typed::gatherv(team, from.buffer(), to.buffers(), root);
          return true;
        };
        const auto into = [&](const Sides& to) {
          return is_in_place(send) ? with(Side(send), to)
                                   : with(Side(send, send_count, send_type), to);
        };
        return team.rank() == root
                   ? into(Sides(receive, counts, displacements, receive_type, team.size()))
                   : into(Sides());
      },
      call, call);
}

template <class Number>
int scatterv(const void* send, const Number* counts, const Number* displacements, Word send_type,
             void* receive, Number receive_count, Word receive_type, int root, Word comm) {
  const auto call = [&] {
    return pass::scatterv(send, counts, displacements, send_type, receive, receive_count,
                          receive_type, root, comm);
  };
  return serve_or_pass(
      Function::scatterv, 0, comm,
      [&](Collectives& team) {
        if (!is_rank(team, root)) return false;
        const auto with = [&](const Sides& from, const Side& to) {
          if (!from.usable() || !to.usable()) return false;
          typed::scatterv(team, from.buffers(), to.buffer(), root);
          return true;
        };
        const auto into = [&](const Side& to) {
          return team.rank() == root
                     ? with(Sides(send, counts, displacements, send_type, team.size()), to)
                     : with(Sides(), to);
        };
        return is_in_place(receive) ? into(Side(receive))
                                    : into(Side(receive, receive_count, receive_type));
      },
      call, call);
}

template <class Number>
int alltoallv(const void* send, const Number* send_counts, const Number* send_displacements,
              Word send_type, void* receive, const Number* counts, const Number* displacements,
              Word receive_type, Word comm) {
  const auto call = [&] {
    return pass::alltoallv(send, send_counts, send_displacements, send_type, receive, counts,
                           displacements, receive_type, comm);
  };
  const bool stays = is_in_place(send);
  return serve_or_pass(
      Function::alltoallv, 0, comm,
      [&](Collectives& team) {
        const Sides to(receive, counts, displacements, receive_type, team.size());
        if (!to.usable()) return false;
        if (stays) {
          typed::alltoallv(team, {send, nullptr, nullptr, to.buffers().elements}, to.buffers());
          return true;
        }
        const Sides from(send, send_counts, send_displacements, send_type, team.size());
        if (!from.usable()) return false;
        typed::alltoallv(team, from.buffers(), to.buffers());
        return true;
      },
      call, [&] { return stays ? -1 : call(); });
}

}  // namespace

namespace serve {

#define ROPEWALK_VECTORS(suffix, Number)                                                          \
  int Allgatherv##suffix(const void* send, Number send_count, Word send_type, void* receive,      \
                         const Number* counts, const Number* displacements, Word receive_type,    \
                         Word comm) {                                                             \
    return allgatherv(send, send_count, send_type, receive, counts, displacements, receive_type,  \
                      comm);                                                                      \
  }                                                                                               \
  int Gatherv##suffix(const void* send, Number send_count, Word send_type, void* receive,         \
                      const Number* counts, const Number* displacements, Word receive_type,       \
                      int root, Word comm) {                                                      \
    return gatherv(send, send_count, send_type, receive, counts, displacements, receive_type,     \
                   root, comm);                                                                   \
  }                                                                                               \
  int Scatterv##suffix(const void* send, const Number* counts, const Number* displacements,       \
                       Word send_type, void* receive, Number receive_count, Word receive_type,    \
                       int root, Word comm) {                                                     \
    return scatterv(send, counts, displacements, send_type, receive, receive_count, receive_type, \
                    root, comm);                                                                  \
  }                                                                                               \
  int Alltoallv##suffix(const void* send, const Number* send_counts,                              \
                        const Number* send_displacements, Word send_type, void* receive,          \
                        const Number* counts, const Number* displacements, Word receive_type,     \
                        Word comm) {                                                              \
    return alltoallv(send, send_counts, send_displacements, send_type, receive, counts,           \
                     displacements, receive_type, comm);                                          \
  }
ROPEWALK_VECTORS(, int)
ROPEWALK_VECTORS(_c, Count)
#undef ROPEWALK_VECTORS

}  // namespace serve
}  // namespace ropewalk::preload
