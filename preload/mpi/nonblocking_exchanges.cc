// This file starts exchanges between neighbours, and alltoallw, on the thread of the communicator
// (nonblocking.cc). A rank knows the sizes of its own blocks alone, so that none is too small.
#include <memory>
#include <utility>

#include "by_ints.hpp"
#include "neighbour_sides.hpp"
#include "pass.hpp"
#include "starting.hpp"

namespace ropewalk::preload {
namespace {

Reason obstacle_among_neighbours(const CommunicatorEntry& entry) {
  if (!entry.starts_exchanges) return Reason::nonblocking;
  if (!collectives::typed::serves_neighbours(*entry.team)) return Reason::several_nodes;
  const Neighbourhood* around = entry.neighbourhood.get();
  return around != nullptr && around->starts ? Reason::none : Reason::no_grid;
}

Reason obstacle_to_alltoallw(const CommunicatorEntry& entry) {
  if (!entry.starts_exchanges) return Reason::nonblocking;
  const bool served = collectives::typed::serves_alltoallw(*entry.team);
  return served ? Reason::none : Reason::several_nodes;
}

// make(neighbourhood): the arguments of an exchange.
template <class Make, class Pass>
int start_among_neighbours(Function function, Word comm, void* request, Make make, Pass pass) {
  using Made = decltype(make(std::declval<const Neighbourhood&>()));
  return start_or_pass(
      function, 0, comm, request, &obstacle_among_neighbours,
      [&](const CommunicatorEntry& on) -> StartedCall {
        const auto around = on.neighbourhood;
        const std::shared_ptr<const Made> sides(new Made(make(*around)));
        if (!sides->usable()) return nullptr;
        return [=](Collectives& team) { sides->exchange(team, *around); };
      },
      pass);
}

template <class Number, class Pass>
int start_alltoallw(const void* send, const Number* send_counts, const Number* send_displacements,
                    const void* send_types, void* receive, const Number* counts,
                    const Number* displacements, const void* types, Word comm, void* request,
                    Pass pass) {
  return start_or_pass(
      Function::ialltoallw, 0, comm, request, &obstacle_to_alltoallw,
      [&](const CommunicatorEntry& on) -> StartedCall {
        const auto sides = std::make_shared<const AlltoallwSides>(
            on.size, send, send_counts, send_displacements, send_types, receive, counts,
            displacements, types);
        if (!sides->usable()) return nullptr;
        return [sides](Collectives& team) { sides->exchange(team); };
      },
      pass);
}

template <class Given, class WithInts, class... Arguments>
int start_by_mpi(Given* given, WithInts* with_ints, Word comm, void* request,
                 Arguments... arguments) {
  if (given == nullptr) OwnRequest::give_none(request);
  return call_either(
      "a nonblocking exchange that this MPI does not offer, or not with counts beyond an int; use "
      "a larger datatype, or a library of MPI 4",
      comm, given, with_ints, arguments..., comm, request);
}

}  // namespace

namespace serve {

// `sides` are the arguments of the exchange in the neighbourhood `around`.
#define ROPEWALK_STARTS(name, with_ints, function, sides, parameters, ...)                  \
  int name parameters {                                                                     \
    return start_among_neighbours(                                                          \
        Function::function, c, request, [&](const Neighbourhood& around) { return sides; }, \
        [&] { return start_by_mpi(next.name, next.with_ints, c, request, __VA_ARGS__); });  \
  }
#define ROPEWALK_ALL_STARTS(suffix, Number)                                                        \
  ROPEWALK_STARTS(                                                                                 \
      Ineighbor_allgather##suffix, Ineighbor_allgather, ineighbor_allgather,                       \
      NeighbourSides(around, s, t, equal_places(n, true), r, u, equal_places(m, false)),           \
      (const void* s, Number n, Word t, void* r, Number m, Word u, Word c, void* request), s, n,   \
      t, r, m, u)                                                                                  \
  ROPEWALK_STARTS(                                                                                 \
      Ineighbor_alltoall##suffix, Ineighbor_alltoall, ineighbor_alltoall,                          \
      NeighbourSides(around, s, t, equal_places(n, false), r, u, equal_places(m, false)),          \
      (const void* s, Number n, Word t, void* r, Number m, Word u, Word c, void* request), s, n,   \
      t, r, m, u)                                                                                  \
  ROPEWALK_STARTS(Ineighbor_allgatherv##suffix, Ineighbor_allgatherv, ineighbor_allgatherv,        \
                  NeighbourSides(around, s, t, equal_places(n, true), r, u, any_places(m, d)),     \
                  (const void* s, Number n, Word t, void* r, const Number* m, const Number* d,     \
                   Word u, Word c, void* request),                                                 \
                  s, n, t, r, counts(m, of_sources(c)), counts(d, of_sources(c)), u)               \
  ROPEWALK_STARTS(Ineighbor_alltoallv##suffix, Ineighbor_alltoallv, ineighbor_alltoallv,           \
                  NeighbourSides(around, s, t, any_places(n, e), r, u, any_places(m, d)),          \
                  (const void* s, const Number* n, const Number* e, Word t, void* r,               \
                   const Number* m, const Number* d, Word u, Word c, void* request),               \
                  s, counts(n, of_destinations(c)), counts(e, of_destinations(c)), t, r,           \
                  counts(m, of_sources(c)), counts(d, of_sources(c)), u)                           \
  ROPEWALK_STARTS(Ineighbor_alltoallw##suffix, Ineighbor_alltoallw, ineighbor_alltoallw,           \
                  TypedNeighbourSides(around, s, n, e, t, r, m, d, u),                             \
                  (const void* s, const Number* n, const Count* e, const void* t, void* r,         \
                   const Number* m, const Count* d, const void* u, Word c, void* request),         \
                  s, counts(n, of_destinations(c)), e, t, r, counts(m, of_sources(c)), d, u)       \
  int Ialltoallw##suffix(const void* s, const Number* n, const Number* e, const void* t, void* r,  \
                         const Number* m, const Number* d, const void* u, Word c, void* request) { \
    return start_alltoallw(s, n, e, t, r, m, d, u, c, request, [&] {                               \
      return start_by_mpi(next.Ialltoallw##suffix, next.Ialltoallw, c, request, s,                 \
                          counts(n, of_ranks_unless_in_place(s, c)),                               \
                          counts(e, of_ranks_unless_in_place(s, c)), t, r, counts(m, of_ranks(c)), \
                          counts(d, of_ranks(c)), u);                                              \
    });                                                                                            \
  }
ROPEWALK_ALL_STARTS(, int)
ROPEWALK_ALL_STARTS(_c, Count)
#undef ROPEWALK_ALL_STARTS
#undef ROPEWALK_STARTS

}  // namespace serve
}  // namespace ropewalk::preload
