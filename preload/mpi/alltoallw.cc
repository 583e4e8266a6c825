// This file has the movement whose blocks have types of their own. Inside a node each rank copies
// what is sent to it from where it lies to where it belongs.
#include "call.hpp"
#include "collectives/typed.hpp"
#include "neighbour_sides.hpp"
#include "pass.hpp"

namespace ropewalk::preload {
namespace pass {

inline int alltoallw(const void* s, const int* n, const int* d, const void* t, void* r,
                     const int* m, const int* e, const void* u, Word c) {
  return next.Alltoallw(s, n, d, t, r, m, e, u, c);
}
inline int alltoallw(const void* s, const Count* n, const Count* d, const void* t, void* r,
                     const Count* m, const Count* e, const void* u, Word c) {
  if (next.Alltoallw_c != nullptr) return next.Alltoallw_c(s, n, d, t, r, m, e, u, c);
  const std::size_t blocks = group_sizes({clean(c)}).other;
  // In place, what is sent is not described.
  const std::size_t sent = collectives::is_in_place(s) ? 0 : blocks;
  const Ints i{all(sent == 0 ? nullptr : n, sent), all(sent == 0 ? nullptr : d, sent),
               all(m, blocks), all(e, blocks)};
  if (all_fit(i, c)) return next.Alltoallw(s, i[0], i[1], t, r, i[2], i[3], u, c);
  return raise({clean(c)},
               "alltoallw: more than 2^31 - 1 elements, or bytes to a block, which this MPI does "
               "not offer; use larger datatypes, or addresses in them with MPI_BOTTOM");
}

}  // namespace pass

namespace {

namespace typed = collectives::typed;

template <class Pass>
int pass_all(Function function, Pass pass) {
  Watch watch(function, 0);
  const int code = pass();
  watch.passed(Reason::several_nodes);
  return code;
}

template <class Number>
int alltoallw(const void* send, const Number* send_counts, const Number* send_displacements,
              const void* send_types, void* receive, const Number* counts,
              const Number* displacements, const void* types, Word comm) {
  const auto call = [&] {
    return pass::alltoallw(send, send_counts, send_displacements, send_types, receive, counts,
                           displacements, types, comm);
  };
  const CommunicatorEntry* entry = entry_of(clean(comm));
  if (entry != nullptr && entry->team != nullptr && !typed::serves_alltoallw(*entry->team)) {
    return pass_all(Function::alltoallw, call);
  }
  const bool stays = collectives::is_in_place(send);
  return serve_or_pass(
      Function::alltoallw, 0, comm,
      [&](Collectives& team) {
        const AlltoallwSides sides(team.size(), send, send_counts, send_displacements, send_types,
                                   receive, counts, displacements, types);
        if (sides.usable()) sides.exchange(team);
        return sides.usable();
      },
      call, [&] { return stays ? -1 : call(); });
}

}  // namespace

namespace serve {

int Alltoallw(const void* send, const int* send_counts, const int* send_displacements,
              const void* send_types, void* receive, const int* counts, const int* displacements,
              const void* types, Word comm) {
  return alltoallw(send, send_counts, send_displacements, send_types, receive, counts,
                   displacements, types, comm);
}
int Alltoallw_c(const void* send, const Count* send_counts, const Count* send_displacements,
                const void* send_types, void* receive, const Count* counts,
                const Count* displacements, const void* types, Word comm) {
  return alltoallw(send, send_counts, send_displacements, send_types, receive, counts,
                   displacements, types, comm);
}

}  // namespace serve
}  // namespace ropewalk::preload
