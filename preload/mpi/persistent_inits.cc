// This file serves MPI_Barrier_init, MPI_Allreduce_init and the like (persistent.hpp). They are
// collective, so that here the ranks agree whether they serve the collective themselves. MPI sets
// it up in any case.
#include <exception>
#include <utility>

#include "by_ints.hpp"
#include "call.hpp"
#include "message_mpi.hpp"
#include "message_peers.hpp"
#include "mpi/functions.hpp"
#include "mpi/library.hpp"
#include "pending.hpp"
#include "persistent_plans.hpp"
#include "promise.hpp"

namespace ropewalk::preload {
namespace {

using collectives::is_in_place;
using messages::MessageLock;
using messages::pending;
using messages::ProgramRequests;

// A collective that is set up is called more than once, so that its communicator gets a team at
// once.
CommunicatorEntry* entry_with_team(Word comm) noexcept {
  CommunicatorEntry* entry = entry_of(comm);
  const bool is_new = entry != nullptr && entry->reason == Reason::new_communicator;
  return is_new ? entry_of(comm) : entry;
}

Reason obstacle_to_serve(CommunicatorEntry* entry, bool among_neighbours) noexcept {
  if (entry == nullptr) return Reason::outside;
  if (entry->team == nullptr) return entry->reason;
  if (entry->team->nodes() != 1) return Reason::several_nodes;
  const bool found = !among_neighbours || neighbourhood_of(*entry) != nullptr;
  return found ? Reason::none : Reason::no_grid;
}

// Where threads call MPI at the same time, the MessageLock lets one of them at a time use the table
// of requests. MPI_Init has told it so, unless that was called by its PMPI name.
bool can_serve() {
  const bool multiple = mpi::thread_level() == mpi::ThreadLevel::multiple;
  return multiple == messages::ranks.threads && messages::completes_by_us() &&
         messages::load_message_functions();
}

// The request of a collective that is served, and its entry in the table of requests. Both are gone
// at the end unless they were given to the program.
class ServedRequest {
 public:
  ServedRequest() = default;
  ~ServedRequest() {
    if (handle_ == 0) return;
    {
      const MessageLock lock;  // until the entry is gone: MPI may give the handle to another thread
      pending.erase_inactive(handle_);
    }
    messages::real.request_free(&handle_);
  }
  ServedRequest(const ServedRequest&) = delete;
  ServedRequest& operator=(const ServedRequest&) = delete;

  void make(Word comm) {
    // To itself: Intel MPI tells again and again that one to MPI_PROC_NULL is complete.
    constexpr int self = 0, tag = 0;
    mpi::check(messages::real.send_init(nullptr, 0, mpi::byte_type().value, self, tag,
                                        mpi::comm_self().value, &handle_),
               "MPI_Send_init");
    const MessageLock lock;
    pending.collectives().add(handle_, comm, nullptr);
  }
  // Takes the place of MPI's request.
  void give_to(void* request, std::shared_ptr<PersistentCollective> served, bool crowded) noexcept {
    const ProgramRequests given(request);
    Word of_mpi = given.get(0);
    messages::real.request_free(&of_mpi);
    const MessageLock lock;
    if (crowded) messages::ranks.crowded = true;
    pending.find_inactive(handle_)->collective = std::move(served);
    given.set(0, std::exchange(handle_, 0));
    take_completions();
  }

 private:
  Word handle_ = 0;
};

// Returns none where this rank cannot serve the collective.
template <class Plan>
OptionalPlan plan_for(const Collectives& team, Word comm, ServedRequest& request,
                      Plan plan) noexcept {
  try {
    if (!can_serve()) return std::nullopt;
    request.make(comm);
    return plan(team);
  } catch (...) {  // no memory
    return std::nullopt;
  }
}

// plan(team) says what this rank does in a round; pass() has MPI set the collective up.
template <class Plan, class Pass>
int set_up(Function function, Word word, void* request, Plan plan, Pass pass) {
  const Word comm = clean(word);
  Watch watch(function, 0);
  const int code = pass();
  CommunicatorEntry* entry = entry_with_team(comm);
  const bool among_neighbours = function >= Function::neighbor_allgather_init;
  const Reason reason = obstacle_to_serve(entry, among_neighbours);
  if (reason != Reason::none) {
    watch.passed(reason);
    return code;
  }
  Collectives& team = *entry->team;
  ServedRequest own;
  try {
    auto served = PersistentCollective::agree(
        function, team, {comm}, code == 0 ? plan_for(team, comm, own, plan) : std::nullopt);
    if (served == nullptr) {
      watch.passed(Reason::persistent);
      return code;
    }
    const bool crowded = team.state().backend->engine()->team().waits().crowded();
    own.give_to(request, std::move(served), crowded);
  } catch (const std::exception&) {  // MPI fails, and will say so
  }
  return code;
}

template <class Given, class WithInts, class... Arguments>
int pass_to(Given* given, WithInts* with_ints, Word comm, Arguments... arguments) {
  return call_either(
      "a persistent collective that this MPI does not offer, or not with counts beyond an int; use "
      "a larger datatype, or a library of MPI 4",
      comm, given, with_ints, arguments...);
}

template <class Number>
OptionalPlan plan_parts(const Collectives& team, const ReductionArguments& given,
                        const Number* counts) {
  if (counts == nullptr) return std::nullopt;
  const std::vector<std::int64_t> parts(counts, counts + team.size());
  return plan_reduce_scatter(team, given, parts);
}
OptionalPlan plan_blocks(const Collectives& team, const ReductionArguments& given,
                         std::int64_t count) {
  const std::vector<std::int64_t> parts(static_cast<std::size_t>(team.size()), count);
  return plan_reduce_scatter(team, given, parts);
}

}  // namespace

namespace serve {

int Barrier_init(Word comm, Word info, void* request) {
  return set_up(Function::barrier_init, comm, request, &plan_barrier, [&] {
    return pass_to(next.Barrier_init, next.Barrier_init, comm, comm, info, request);
  });
}

#define ROPEWALK_BCAST(name, Number)                                                         \
  int name(void* data, Number n, Word type, int root, Word comm, Word info, void* request) { \
    return set_up(                                                                           \
        Function::bcast_init, comm, request,                                                 \
        [&](const Collectives& team) {                                                       \
          return plan_broadcast(team, equal_blocks(data, n, type, 1), root);                 \
        },                                                                                   \
        [&] {                                                                                \
          return pass_to(next.name, next.Bcast_init, comm, data, n, type, root, comm, info,  \
                         request);                                                           \
        });                                                                                  \
  }
ROPEWALK_BCAST(Bcast_init, int)
ROPEWALK_BCAST(Bcast_init_c, Count)
#undef ROPEWALK_BCAST

// `plan`: of the team, the arguments `given`, and the count `n`.
#define ROPEWALK_REDUCTION(name, with_ints, function, Number, plan, number)                      \
  int name(const void* send, void* receive, Number n, Word type, Word op, Word comm, Word info,  \
           void* request) {                                                                      \
    const ReductionArguments given{send, receive, type, op};                                     \
    return set_up(                                                                               \
        Function::function, comm, request, [&](const Collectives& team) { return plan; },        \
        [&] {                                                                                    \
          return pass_to(next.name, next.with_ints, comm, send, receive, number, type, op, comm, \
                         info, request);                                                         \
        });                                                                                      \
  }
#define ROPEWALK_REDUCTIONS(suffix, Number)                                                        \
  ROPEWALK_REDUCTION(Allreduce_init##suffix, Allreduce_init, allreduce_init, Number,               \
                     plan_allreduce(team, given, n), n)                                            \
  ROPEWALK_REDUCTION(Scan_init##suffix, Scan_init, scan_init, Number,                              \
                     plan_scan(team, given, n, team.rank() + 1), n)                                \
  ROPEWALK_REDUCTION(Exscan_init##suffix, Exscan_init, exscan_init, Number,                        \
                     plan_scan(team, given, n, team.rank()), n)                                    \
  ROPEWALK_REDUCTION(Reduce_scatter_block_init##suffix, Reduce_scatter_block_init,                 \
                     reduce_scatter_block_init, Number, plan_blocks(team, given, n), n)            \
  ROPEWALK_REDUCTION(Reduce_scatter_init##suffix, Reduce_scatter_init, reduce_scatter_init,        \
                     const Number*, plan_parts(team, given, n), counts(n, of_own_ranks(comm)))     \
  int Reduce_init##suffix(const void* send, void* receive, Number n, Word type, Word op, int root, \
                          Word comm, Word info, void* request) {                                   \
    const ReductionArguments given{send, receive, type, op};                                       \
    return set_up(                                                                                 \
        Function::reduce_init, comm, request,                                                      \
        [&](const Collectives& team) { return plan_reduce(team, given, n, root); },                \
        [&] {                                                                                      \
          return pass_to(next.Reduce_init##suffix, next.Reduce_init, comm, send, receive, n, type, \
                         op, root, comm, info, request);                                           \
        });                                                                                        \
  }
ROPEWALK_REDUCTIONS(, int)
ROPEWALK_REDUCTIONS(_c, Count)
#undef ROPEWALK_REDUCTIONS
#undef ROPEWALK_REDUCTION

namespace {

// What is sent, or none where it is in place, as one block or as one for each rank.
template <class Number>
OptionalBlocks one_block(const void* data, Number count, Word type) {
  if (is_in_place(data)) return std::nullopt;
  return equal_blocks(data, count, type, 1);
}
template <class Number>
OptionalBlocks blocks_unless_in_place(const void* data, Number count, Word type, int ranks) {
  if (is_in_place(data)) return std::nullopt;
  return equal_blocks(data, count, type, ranks);
}
template <class Number>
OptionalBlocks blocks_unless_in_place(const void* data, const Number* counts, const Number* places,
                                      Word type, int ranks) {
  if (is_in_place(data)) return std::nullopt;
  return any_blocks(data, counts, places, type, ranks);
}
template <class Make>
OptionalBlocks at_root(const Collectives& team, int root, Make make) {
  if (team.rank() != root) return std::nullopt;
  return make();
}

}  // namespace

#define ROPEWALK_MOVEMENTS(suffix, Number)                                                         \
  int Allgather_init##suffix(const void* s, Number n, Word t, void* r, Number m, Word u, Word c,   \
                             Word info, void* request) {                                           \
    return set_up(                                                                                 \
        Function::allgather_init, c, request,                                                      \
        [&](const Collectives& team) {                                                             \
          return plan_allgather(team, one_block(s, n, t), equal_blocks(r, m, u, team.size()));     \
        },                                                                                         \
        [&] {                                                                                      \
          return pass_to(next.Allgather_init##suffix, next.Allgather_init, c, s, n, t, r, m, u, c, \
                         info, request);                                                           \
        });                                                                                        \
  }                                                                                                \
  int Allgatherv_init##suffix(const void* s, Number n, Word t, void* r, const Number* m,           \
                              const Number* d, Word u, Word c, Word info, void* request) {         \
    return set_up(                                                                                 \
        Function::allgatherv_init, c, request,                                                     \
        [&](const Collectives& team) {                                                             \
          return plan_allgather(team, one_block(s, n, t), any_blocks(r, m, d, u, team.size()));    \
        },                                                                                         \
        [&] {                                                                                      \
          return pass_to(next.Allgatherv_init##suffix, next.Allgatherv_init, c, s, n, t, r,        \
                         counts(m, of_ranks(c)), counts(d, of_ranks(c)), u, c, info, request);     \
        });                                                                                        \
  }                                                                                                \
  int Gather_init##suffix(const void* s, Number n, Word t, void* r, Number m, Word u, int root,    \
                          Word c, Word info, void* request) {                                      \
    return set_up(                                                                                 \
        Function::gather_init, c, request,                                                         \
        [&](const Collectives& team) {                                                             \
          const auto to = [&] { return equal_blocks(r, m, u, team.size()); };                      \
          return plan_gather(team, one_block(s, n, t), at_root(team, root, to), root);             \
        },                                                                                         \
        [&] {                                                                                      \
          return pass_to(next.Gather_init##suffix, next.Gather_init, c, s, n, t, r, m, u, root, c, \
                         info, request);                                                           \
        });                                                                                        \
  }                                                                                                \
  int Gatherv_init##suffix(const void* s, Number n, Word t, void* r, const Number* m,              \
                           const Number* d, Word u, int root, Word c, Word info, void* request) {  \
    return set_up(                                                                                 \
        Function::gatherv_init, c, request,                                                        \
        [&](const Collectives& team) {                                                             \
          const auto to = [&] { return any_blocks(r, m, d, u, team.size()); };                     \
          return plan_gather(team, one_block(s, n, t), at_root(team, root, to), root);             \
        },                                                                                         \
        [&] {                                                                                      \
          return pass_to(next.Gatherv_init##suffix, next.Gatherv_init, c, s, n, t, r,              \
                         counts(m, of_root(c, root)), counts(d, of_root(c, root)), u, root, c,     \
                         info, request);                                                           \
        });                                                                                        \
  }                                                                                                \
  int Scatter_init##suffix(const void* s, Number n, Word t, void* r, Number m, Word u, int root,   \
                           Word c, Word info, void* request) {                                     \
    return set_up(                                                                                 \
        Function::scatter_init, c, request,                                                        \
        [&](const Collectives& team) {                                                             \
          const auto from = [&] { return equal_blocks(s, n, t, team.size()); };                    \
          return plan_scatter(team, at_root(team, root, from), one_block(r, m, u), root);          \
        },                                                                                         \
        [&] {                                                                                      \
          return pass_to(next.Scatter_init##suffix, next.Scatter_init, c, s, n, t, r, m, u, root,  \
                         c, info, request);                                                        \
        });                                                                                        \
  }                                                                                                \
  int Scatterv_init##suffix(const void* s, const Number* n, const Number* d, Word t, void* r,      \
                            Number m, Word u, int root, Word c, Word info, void* request) {        \
    return set_up(                                                                                 \
        Function::scatterv_init, c, request,                                                       \
        [&](const Collectives& team) {                                                             \
          const auto from = [&] { return any_blocks(s, n, d, t, team.size()); };                   \
          return plan_scatter(team, at_root(team, root, from), one_block(r, m, u), root);          \
        },                                                                                         \
        [&] {                                                                                      \
          return pass_to(next.Scatterv_init##suffix, next.Scatterv_init, c, s,                     \
                         counts(n, of_root(c, root)), counts(d, of_root(c, root)), t, r, m, u,     \
                         root, c, info, request);                                                  \
        });                                                                                        \
  }                                                                                                \
  int Alltoall_init##suffix(const void* s, Number n, Word t, void* r, Number m, Word u, Word c,    \
                            Word info, void* request) {                                            \
    return set_up(                                                                                 \
        Function::alltoall_init, c, request,                                                       \
        [&](const Collectives& team) {                                                             \
          return plan_alltoall(team, blocks_unless_in_place(s, n, t, team.size()),                 \
                               equal_blocks(r, m, u, team.size()));                                \
        },                                                                                         \
        [&] {                                                                                      \
          return pass_to(next.Alltoall_init##suffix, next.Alltoall_init, c, s, n, t, r, m, u, c,   \
                         info, request);                                                           \
        });                                                                                        \
  }                                                                                                \
  int Alltoallv_init##suffix(const void* s, const Number* n, const Number* e, Word t, void* r,     \
                             const Number* m, const Number* d, Word u, Word c, Word info,          \
                             void* request) {                                                      \
    return set_up(                                                                                 \
        Function::alltoallv_init, c, request,                                                      \
        [&](const Collectives& team) {                                                             \
          return plan_alltoall(team, blocks_unless_in_place(s, n, e, t, team.size()),              \
                               any_blocks(r, m, d, u, team.size()));                               \
        },                                                                                         \
        [&] {                                                                                      \
          return pass_to(next.Alltoallv_init##suffix, next.Alltoallv_init, c, s,                   \
                         counts(n, of_ranks_unless_in_place(s, c)),                                \
                         counts(e, of_ranks_unless_in_place(s, c)), t, r, counts(m, of_ranks(c)),  \
                         counts(d, of_ranks(c)), u, c, info, request);                             \
        });                                                                                        \
  }
ROPEWALK_MOVEMENTS(, int)
ROPEWALK_MOVEMENTS(_c, Count)
#undef ROPEWALK_MOVEMENTS

namespace {

const Neighbourhood& neighbourhood_on(Word comm) {
  return *neighbourhood_of(*entry_of(clean(comm)));
}
int number_sent(const Neighbourhood& around) {
  return static_cast<int>(around.destinations.size());
}
int number_received(const Neighbourhood& around) {
  return static_cast<int>(around.incoming.size());
}
// The same block for each neighbour.
template <class Number>
BlockArguments one_for_each(const void* data, Number count, Word type,
                            const Neighbourhood& around) {
  BlockArguments made = equal_blocks(data, count, type, number_sent(around));
  made.places.assign(made.places.size(), 0);
  return made;
}

}  // namespace

// `from` and `to` are the arguments on either side, in the neighbourhood `around`.
#define ROPEWALK_NEIGHBOURS(name, function, from, to, parameters, arguments) \
  int name parameters {                                                      \
    return set_up(                                                           \
        Function::function, c, request,                                      \
        [&](const Collectives&) {                                            \
          const Neighbourhood& around = neighbourhood_on(c);                 \
          return plan_neighbours(around, from, to);                          \
        },                                                                   \
        [&] { return pass_to arguments; });                                  \
  }
#define ROPEWALK_ALL_NEIGHBOURS(suffix, Number)                                                    \
  ROPEWALK_NEIGHBOURS(Neighbor_allgather_init##suffix, neighbor_allgather_init,                    \
                      one_for_each(s, n, t, around),                                               \
                      equal_blocks(r, m, u, number_received(around)),                              \
                      (const void* s, Number n, Word t, void* r, Number m, Word u, Word c,         \
                       Word info, void* request),                                                  \
                      (next.Neighbor_allgather_init##suffix, next.Neighbor_allgather_init, c, s,   \
                       n, t, r, m, u, c, info, request))                                           \
  ROPEWALK_NEIGHBOURS(                                                                             \
      Neighbor_allgatherv_init##suffix, neighbor_allgatherv_init, one_for_each(s, n, t, around),   \
      any_blocks(r, m, d, u, number_received(around)),                                             \
      (const void* s, Number n, Word t, void* r, const Number* m, const Number* d, Word u, Word c, \
       Word info, void* request),                                                                  \
      (next.Neighbor_allgatherv_init##suffix, next.Neighbor_allgatherv_init, c, s, n, t, r,        \
       counts(m, of_sources(c)), counts(d, of_sources(c)), u, c, info, request))                   \
  ROPEWALK_NEIGHBOURS(Neighbor_alltoall_init##suffix, neighbor_alltoall_init,                      \
                      equal_blocks(s, n, t, number_sent(around)),                                  \
                      equal_blocks(r, m, u, number_received(around)),                              \
                      (const void* s, Number n, Word t, void* r, Number m, Word u, Word c,         \
                       Word info, void* request),                                                  \
                      (next.Neighbor_alltoall_init##suffix, next.Neighbor_alltoall_init, c, s, n,  \
                       t, r, m, u, c, info, request))                                              \
  ROPEWALK_NEIGHBOURS(                                                                             \
      Neighbor_alltoallv_init##suffix, neighbor_alltoallv_init,                                    \
      any_blocks(s, n, e, t, number_sent(around)),                                                 \
      any_blocks(r, m, d, u, number_received(around)),                                             \
      (const void* s, const Number* n, const Number* e, Word t, void* r, const Number* m,          \
       const Number* d, Word u, Word c, Word info, void* request),                                 \
      (next.Neighbor_alltoallv_init##suffix, next.Neighbor_alltoallv_init, c, s,                   \
       counts(n, of_destinations(c)), counts(e, of_destinations(c)), t, r,                         \
       counts(m, of_sources(c)), counts(d, of_sources(c)), u, c, info, request))
ROPEWALK_ALL_NEIGHBOURS(, int)
ROPEWALK_ALL_NEIGHBOURS(_c, Count)
#undef ROPEWALK_ALL_NEIGHBOURS
#undef ROPEWALK_NEIGHBOURS

#define ROPEWALK_TYPED(suffix, Number)                                                             \
  int Alltoallw_init##suffix(const void* s, const Number* n, const Number* e, const void* t,       \
                             void* r, const Number* m, const Number* d, const void* u, Word c,     \
                             Word info, void* request) {                                           \
    return set_up(                                                                                 \
        Function::alltoallw_init, c, request,                                                      \
        [&](const Collectives& team) {                                                             \
          return plan_alltoallw(                                                                   \
              team, std::make_shared<const AlltoallwSides>(team.size(), s, n, e, t, r, m, d, u));  \
        },                                                                                         \
        [&] {                                                                                      \
          return pass_to(next.Alltoallw_init##suffix, next.Alltoallw_init, c, s,                   \
                         counts(n, of_ranks_unless_in_place(s, c)),                                \
                         counts(e, of_ranks_unless_in_place(s, c)), t, r, counts(m, of_ranks(c)),  \
                         counts(d, of_ranks(c)), u, c, info, request);                             \
        });                                                                                        \
  }                                                                                                \
  int Neighbor_alltoallw_init##suffix(const void* s, const Number* n, const Count* e,              \
                                      const void* t, void* r, const Number* m, const Count* d,     \
                                      const void* u, Word c, Word info, void* request) {           \
    return set_up(                                                                                 \
        Function::neighbor_alltoallw_init, c, request,                                             \
        [&](const Collectives&) {                                                                  \
          const Neighbourhood& around = neighbourhood_on(c);                                       \
          return plan_neighbours(around, std::make_shared<const TypedNeighbourSides>(              \
                                             around, s, n, e, t, r, m, d, u));                     \
        },                                                                                         \
        [&] {                                                                                      \
          return pass_to(next.Neighbor_alltoallw_init##suffix, next.Neighbor_alltoallw_init, c, s, \
                         counts(n, of_destinations(c)), e, t, r, counts(m, of_sources(c)), d, u,   \
                         c, info, request);                                                        \
        });                                                                                        \
  }
ROPEWALK_TYPED(, int)
ROPEWALK_TYPED(_c, Count)
#undef ROPEWALK_TYPED

}  // namespace serve
}  // namespace ropewalk::preload
