// This file has the neighbourhood collectives on grids and graphs of ranks.
#include "call.hpp"
#include "collectives/algorithms.hpp"
#include "ints.hpp"
#include "pass.hpp"
#include "sides.hpp"
#include "typed_sides.hpp"

namespace ropewalk::preload {
namespace {

namespace typed = collectives::typed;

// Returns null where MPI has to serve the communicator's neighbourhood.
const Neighbourhood* neighbours_of(Word word) noexcept {
  CommunicatorEntry* entry = entry_of(clean(word));
  return entry == nullptr || entry->team == nullptr ? nullptr : neighbourhood_of(*entry);
}

// A block for each neighbour there is, as MPI's arguments say where: block(k) is {count, place}.
struct Place {
  std::int64_t count;
  std::int64_t displacement;
};
// A rank without neighbours has arrays, too, of which nothing is read.
struct Layout {
  // `is_there(k)`: there is a neighbour for block k.
  template <class IsThere, class Block>
  Layout(std::size_t number, IsThere is_there, Block block)
      : blocks(static_cast<int>(number)), counts(number + 1), displacements(number + 1) {
    for (std::size_t k = 0; k < number; ++k) {
      const Place place = is_there(k) ? block(k) : Place{0, 0};
      counts[k] = place.count;
      displacements[k] = place.displacement;
    }
  }
  int blocks;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> displacements;
};

template <class Number>
auto equal_blocks(Number count, bool same) {
  return [=](std::size_t k) {
    return Place{count, same ? 0 : static_cast<std::int64_t>(k) * count};
  };
}
template <class Number>
auto any_blocks(const Number* counts, const Number* displacements) {
  // No arrays: a count that MPI refuses.
  const bool given = counts != nullptr && displacements != nullptr;
  return [=](std::size_t k) { return given ? Place{counts[k], displacements[k]} : Place{-1, 0}; };
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

template <class Send, class Receive, class Pass>
int exchange(Function function, Word comm, const void* send, Word send_type, Send sends,
             void* receive, Word receive_type, Receive receives, Pass pass) {
  const auto serve = [&](Collectives& team, const Neighbourhood& around) {
    const Layout out(
        around.destinations.size(), [&](std::size_t k) { return around.sends(k); }, sends);
    const Layout in(
        around.incoming.size(), [&](std::size_t k) { return around.receives(k); }, receives);
    const Sides from(send, out.counts.data(), out.displacements.data(), send_type, out.blocks);
    const Sides to(receive, in.counts.data(), in.displacements.data(), receive_type, in.blocks);
    if (!from.usable() || !to.usable()) return false;
    typed::neighbours(team, around.ranks(), from.buffers(), to.buffers());
    return true;
  };
  return serve_with_neighbours(function, comm, serve, pass);
}

// Each block has a type of its own.
template <class Number, class Pass>
int exchange_typed(const void* send, const Number* send_counts, const Count* send_displacements,
                   const void* send_types, void* receive, const Number* counts,
                   const Count* displacements, const void* types, Word comm, Pass pass) {
  const auto serve = [&](Collectives& team, const Neighbourhood& around) {
    const TypedSides from(send, send_counts, send_displacements, send_types,
                          around.destinations.size(),
                          [&](std::size_t k) { return around.sends(k); });
    const TypedSides to(receive, counts, displacements, types, around.incoming.size(),
                        [&](std::size_t k) { return around.receives(k); });
    if (!from.usable() || !to.usable()) return false;
    typed::neighbours(team, around.ranks(), from.parts(), to.parts());
    return true;
  };
  return serve_with_neighbours(Function::neighbor_alltoallw, comm, serve, pass);
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

#define ROPEWALK_NEIGHBORS(suffix, Number)                                                         \
  int Neighbor_allgather##suffix(const void* send, Number send_count, Word send_type,              \
                                 void* receive, Number receive_count, Word receive_type,           \
                                 Word comm) {                                                      \
    return exchange(Function::neighbor_allgather, comm, send, send_type,                           \
                    equal_blocks(send_count, true), receive, receive_type,                         \
                    equal_blocks(receive_count, false), [&] {                                      \
                      return pass::neighbor_allgather(send, send_count, send_type, receive,        \
                                                      receive_count, receive_type, comm);          \
                    });                                                                            \
  }                                                                                                \
  int Neighbor_alltoall##suffix(const void* send, Number send_count, Word send_type,               \
                                void* receive, Number receive_count, Word receive_type,            \
                                Word comm) {                                                       \
    return exchange(Function::neighbor_alltoall, comm, send, send_type,                            \
                    equal_blocks(send_count, false), receive, receive_type,                        \
                    equal_blocks(receive_count, false), [&] {                                      \
                      return pass::neighbor_alltoall(send, send_count, send_type, receive,         \
                                                     receive_count, receive_type, comm);           \
                    });                                                                            \
  }                                                                                                \
  int Neighbor_allgatherv##suffix(const void* send, Number send_count, Word send_type,             \
                                  void* receive, const Number* counts,                             \
                                  const Number* displacements, Word receive_type, Word comm) {     \
    return exchange(Function::neighbor_allgatherv, comm, send, send_type,                          \
                    equal_blocks(send_count, true), receive, receive_type,                         \
                    any_blocks(counts, displacements), [&] {                                       \
                      return pass::neighbor_allgatherv(send, send_count, send_type, receive,       \
                                                       counts, displacements, receive_type, comm); \
                    });                                                                            \
  }                                                                                                \
  int Neighbor_alltoallv##suffix(const void* send, const Number* send_counts,                      \
                                 const Number* send_displacements, Word send_type, void* receive,  \
                                 const Number* counts, const Number* displacements,                \
                                 Word receive_type, Word comm) {                                   \
    return exchange(Function::neighbor_alltoallv, comm, send, send_type,                           \
                    any_blocks(send_counts, send_displacements), receive, receive_type,            \
                    any_blocks(counts, displacements), [&] {                                       \
                      return pass::neighbor_alltoallv(send, send_counts, send_displacements,       \
                                                      send_type, receive, counts, displacements,   \
                                                      receive_type, comm);                         \
                    });                                                                            \
  }                                                                                                \
  int Neighbor_alltoallw##suffix(const void* send, const Number* send_counts,                      \
                                 const Count* send_displacements, const void* send_types,          \
                                 void* receive, const Number* counts, const Count* displacements,  \
                                 const void* types, Word comm) {                                   \
    return exchange_typed(send, send_counts, send_displacements, send_types, receive, counts,      \
                          displacements, types, comm, [&] {                                        \
                            return pass::neighbor_alltoallw(send, send_counts, send_displacements, \
                                                            send_types, receive, counts,           \
                                                            displacements, types, comm);           \
                          });                                                                      \
  }
ROPEWALK_NEIGHBORS(, int)
ROPEWALK_NEIGHBORS(_c, Count)
#undef ROPEWALK_NEIGHBORS

}  // namespace serve
}  // namespace ropewalk::preload
