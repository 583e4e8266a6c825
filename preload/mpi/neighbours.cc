// This file has the neighbourhood collectives on grids and graphs of ranks.
#include "call.hpp"
#include "ints.hpp"
#include "neighbour_sides.hpp"
#include "pass.hpp"

namespace ropewalk::preload {
namespace {

namespace typed = collectives::typed;

// Returns null where MPI has to serve the communicator's neighbourhood.
const Neighbourhood* neighbours_of(Word word) noexcept {
  CommunicatorEntry* entry = entry_of(clean(word));
  return entry == nullptr || entry->team == nullptr ? nullptr : neighbourhood_of(*entry);
}

// Why MPI has to serve it.
Reason obstacle(const CommunicatorEntry* entry) {
  if (entry == nullptr) return Reason::outside;
  if (entry->team == nullptr) return entry->reason;
  return typed::serves_neighbours(*entry->team) ? Reason::no_grid : Reason::several_nodes;
}

// serve(team, neighbourhood): as serve_or_pass has it.
template <class Serve, class Pass>
int serve_with_neighbours(Function function, Word comm, Serve serve, Pass pass) {
  const Neighbourhood* neighbourhood = neighbours_of(comm);
  if (neighbourhood == nullptr) {
    const CommunicatorEntry* entry = entry_as_it_is(clean(comm));
    if (entry != nullptr && entry->reason == Reason::no_memory) [[unlikely]] {
      return raise({clean(comm)}, text(Reason::no_memory));
    }
    Watch watch(function, 0);
    const int code = pass();
    watch.passed(obstacle(entry));
    return code;
  }
  return serve_or_pass(
      function, 0, comm, [&](Collectives& team) { return serve(team, *neighbourhood); }, pass,
      pass);
}

// make(neighbourhood): the arguments of an exchange.
template <class Make, class Pass>
int exchange(Function function, Word comm, Make make, Pass pass) {
  const auto serve = [&](Collectives& team, const Neighbourhood& around) {
    const auto sides = make(around);
    if (!sides.usable()) return false;
    sides.exchange(team, around);
    return true;
  };
  return serve_with_neighbours(function, comm, serve, pass);
}

// For an MPI that has no function with 64-bit counts: the other one, if they fit.
template <class Call>
int with_ints(Word comm, const Ints& ints, Call call) {
  if (ints.fit()) return call();
  return raise({clean(comm)},
               "neighbourhood collective: more than 2^31 - 1 elements, which this MPI does not "
               "offer; use a larger datatype");
}

}  // namespace

namespace pass {

inline int neighbor_allgather(const void* s, int n, Word t, void* r, int m, Word u, Word c) {
  return next.Neighbor_allgather(s, n, t, r, m, u, c);
}
inline int neighbor_allgather(const void* s, Count n, Word t, void* r, Count m, Word u, Word c) {
  if (next.Neighbor_allgather_c) return next.Neighbor_allgather_c(s, n, t, r, m, u, c);
  const Ints i{Counts(&n, 1), Counts(&m, 1)};
  return with_ints(c, i, [&] { return next.Neighbor_allgather(s, *i[0], t, r, *i[1], u, c); });
}
inline int neighbor_alltoall(const void* s, int n, Word t, void* r, int m, Word u, Word c) {
  return next.Neighbor_alltoall(s, n, t, r, m, u, c);
}
inline int neighbor_alltoall(const void* s, Count n, Word t, void* r, Count m, Word u, Word c) {
  if (next.Neighbor_alltoall_c) return next.Neighbor_alltoall_c(s, n, t, r, m, u, c);
  const Ints i{Counts(&n, 1), Counts(&m, 1)};
  return with_ints(c, i, [&] { return next.Neighbor_alltoall(s, *i[0], t, r, *i[1], u, c); });
}
inline int neighbor_allgatherv(const void* s, int n, Word t, void* r, const int* m, const int* d,
                               Word u, Word c) {
  return next.Neighbor_allgatherv(s, n, t, r, m, d, u, c);
}
inline int neighbor_allgatherv(const void* s, Count n, Word t, void* r, const Count* m,
                               const Count* d, Word u, Word c) {
  if (next.Neighbor_allgatherv_c) return next.Neighbor_allgatherv_c(s, n, t, r, m, d, u, c);
  const std::size_t in = degrees({clean(c)}).in;
  const Ints i{Counts(&n, 1), Counts(m, in), Counts(d, in)};
  return with_ints(c, i,
                   [&] { return next.Neighbor_allgatherv(s, *i[0], t, r, i[1], i[2], u, c); });
}
inline int neighbor_alltoallv(const void* s, const int* n, const int* e, Word t, void* r,
                              const int* m, const int* d, Word u, Word c) {
  return next.Neighbor_alltoallv(s, n, e, t, r, m, d, u, c);
}
inline int neighbor_alltoallv(const void* s, const Count* n, const Count* e, Word t, void* r,
                              const Count* m, const Count* d, Word u, Word c) {
  if (next.Neighbor_alltoallv_c) return next.Neighbor_alltoallv_c(s, n, e, t, r, m, d, u, c);
  const auto [in, out] = degrees({clean(c)});
  const Ints i{Counts(n, out), Counts(e, out), Counts(m, in), Counts(d, in)};
  return with_ints(c, i,
                   [&] { return next.Neighbor_alltoallv(s, i[0], i[1], t, r, i[2], i[3], u, c); });
}

inline int neighbor_alltoallw(const void* s, const int* n, const Count* e, const void* t, void* r,
                              const int* m, const Count* d, const void* u, Word c) {
  return next.Neighbor_alltoallw(s, n, e, t, r, m, d, u, c);
}
inline int neighbor_alltoallw(const void* s, const Count* n, const Count* e, const void* t, void* r,
                              const Count* m, const Count* d, const void* u, Word c) {
  if (next.Neighbor_alltoallw_c) return next.Neighbor_alltoallw_c(s, n, e, t, r, m, d, u, c);
  const auto [in, out] = degrees({clean(c)});
  const Ints i{Counts(n, out), Counts(m, in)};
  return with_ints(c, i, [&] { return next.Neighbor_alltoallw(s, i[0], e, t, r, i[1], d, u, c); });
}

}  // namespace pass

namespace serve {

// `sides` are the arguments of the exchange in the neighbourhood `around`.
#define ROPEWALK_NEIGHBORS(name, lower, sides, parameters, arguments)           \
  int name parameters {                                                         \
    return exchange(                                                            \
        Function::lower, c, [&](const Neighbourhood& around) { return sides; }, \
        [&] { return pass::lower arguments; });                                 \
  }
#define ROPEWALK_ALL_NEIGHBORS(suffix, Number)                                                     \
  ROPEWALK_NEIGHBORS(                                                                              \
      Neighbor_allgather##suffix, neighbor_allgather,                                              \
      NeighbourSides(around, s, t, equal_places(n, true), r, u, equal_places(m, false)),           \
      (const void* s, Number n, Word t, void* r, Number m, Word u, Word c), (s, n, t, r, m, u, c)) \
  ROPEWALK_NEIGHBORS(                                                                              \
      Neighbor_alltoall##suffix, neighbor_alltoall,                                                \
      NeighbourSides(around, s, t, equal_places(n, false), r, u, equal_places(m, false)),          \
      (const void* s, Number n, Word t, void* r, Number m, Word u, Word c), (s, n, t, r, m, u, c)) \
  ROPEWALK_NEIGHBORS(Neighbor_allgatherv##suffix, neighbor_allgatherv,                             \
                     NeighbourSides(around, s, t, equal_places(n, true), r, u, any_places(m, d)),  \
                     (const void* s, Number n, Word t, void* r, const Number* m, const Number* d,  \
                      Word u, Word c),                                                             \
                     (s, n, t, r, m, d, u, c))                                                     \
  ROPEWALK_NEIGHBORS(Neighbor_alltoallv##suffix, neighbor_alltoallv,                               \
                     NeighbourSides(around, s, t, any_places(n, e), r, u, any_places(m, d)),       \
                     (const void* s, const Number* n, const Number* e, Word t, void* r,            \
                      const Number* m, const Number* d, Word u, Word c),                           \
                     (s, n, e, t, r, m, d, u, c))                                                  \
  ROPEWALK_NEIGHBORS(Neighbor_alltoallw##suffix, neighbor_alltoallw,                               \
                     TypedNeighbourSides(around, s, n, e, t, r, m, d, u),                          \
                     (const void* s, const Number* n, const Count* e, const void* t, void* r,      \
                      const Number* m, const Count* d, const void* u, Word c),                     \
                     (s, n, e, t, r, m, d, u, c))
ROPEWALK_ALL_NEIGHBORS(, int)
ROPEWALK_ALL_NEIGHBORS(_c, Count)
#undef ROPEWALK_ALL_NEIGHBORS
#undef ROPEWALK_NEIGHBORS

}  // namespace serve
}  // namespace ropewalk::preload
