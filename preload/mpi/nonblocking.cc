// Nonblocking collectives are the blocking ones, run on the thread of the communicator's team
// behind a generalised request of MPI, which the program's MPI_Wait and MPI_Test understand. Some
// reductions of a program with one thread go without (starting_rounds.hpp).
//
// Blocking collectives on the same communicator wait for those that were started before: all ranks
// have started them by then, or will start them without our help.
#include "nonblocking.hpp"

#include <atomic>
#include <memory>
#include <new>

#include "collectives/engine.hpp"
#include "kept_elements.hpp"
#include "mpi/collectively.hpp"
#include "node/peers.hpp"
#include "pass.hpp"
#include "settings/value.hpp"
#include "sides.hpp"
#include "starting.hpp"
#include "starting_rounds.hpp"

namespace ropewalk::preload {

namespace {

// A node has cores to spare where it has two for each rank.
bool has_cores_to_spare(Collectives::State& state) {
  const node::Team& team = state.backend->engine()->team();
  return team.cores() >= 2 * team.size();
}

// So many communicators may have a thread at a time: each takes one of the process's limit and some
// memory.
std::atomic<int> places{32};

}  // namespace

bool serves_nonblocking(Collectives& team, mpi::Comm comm) {
  const settings::Value setting = settings::read(settings::Id::nonblocking);
  bool wanted = setting.is("auto") ? has_cores_to_spare(team.state()) : setting.is("on");
  wanted = wanted && mpi::thread_level() == mpi::ThreadLevel::multiple;
  const bool has_place = wanted && places.fetch_sub(1) > 0;
  const bool agreed = mpi::true_on_all(comm, has_place && team.state().worker.start());
  if (agreed) return true;
  if (wanted) leave_place();
  team.state().worker.stop();
  return false;
}

bool serves_nonblocking_exchanges(mpi::Comm comm) {
  return mpi::true_on_all(comm, settings::read(settings::Id::nonblocking).is("on"));
}

void leave_place() noexcept { places.fetch_add(1); }

namespace {

namespace typed = collectives::typed;
using collectives::is_in_place;

// Handing a call to another thread costs some 10 us, what a small one takes altogether.
constexpr std::size_t least_bytes = std::size_t{64} << 10;

// Own types of ropewalk have no handle; those of MPI keep theirs.
std::shared_ptr<KeptElements> keep(const Side& side) {
  return std::make_shared<KeptElements>(side.buffer().elements);
}

// The same on all ranks.
auto if_large(std::size_t bytes) {
  return [bytes](const CommunicatorEntry&) {
    return bytes < least_bytes ? Reason::nonblocking : Reason::none;
  };
}

// Without a thread, every rank combines the data of all ranks by itself. Below these bytes, and
// from so many of all ranks on, MPI takes less time (bench/dropin/nonblocking.py): the table of
// requests costs 1 us, and MPI's ranks share the work.
constexpr std::size_t least_combined_bytes = std::size_t{4} << 10;
constexpr std::size_t least_rooted_bytes = std::size_t{32} << 10;  // with Open MPI
constexpr std::size_t most_combined_bytes = std::size_t{1} << 20;

// Says at little cost that so few elements of predefined types are less than anybody serves. Those
// of other types have operations of the user.
constexpr bool is_small(int count) noexcept {
  constexpr std::size_t most_element = 32;  // bytes of the largest predefined type
  return static_cast<std::size_t>(count) * most_element < least_combined_bytes;
}

// The same on all ranks.
bool is_for_rounds(Function function, std::size_t bytes, Word comm) noexcept {
  if (bytes < least_combined_bytes) return false;
  const CommunicatorEntry* entry = entry_as_it_is(clean(comm));
  if (entry == nullptr || entry->team == nullptr || entry->log == nullptr) return false;
  const bool rooted = function == Function::ireduce && mpi::family() == mpi::Family::openmpi;
  if (rooted && bytes < least_rooted_bytes) return false;
  return bytes <= most_combined_bytes / static_cast<std::size_t>(entry->size);
}

std::size_t bytes_of(const Side& side) {
  return side.usable() ? side.buffer().count * side.buffer().elements.bytes : 0;
}

using Call = StartedCall;

// Reductions by operations of the user go to MPI: the program may free the operation meanwhile.
template <class Plan, class Reduce, class Pass>
int start_reduction(Function function, int count, Word type, Word op, Word comm, void* request,
                    Plan plan, Reduce reduce, Pass pass) {
  // The reason counts in the statistics alone.
  if (statistics == Statistics::off && count >= 0 && is_small(count)) return pass();
  try {
    const auto reduction = reduction_of(type, op);
    const bool ours = reduction && count >= 0 && !reduction->operation.by_mpi;
    const std::size_t bytes =
        ours ? static_cast<std::size_t>(count) * reduction->operation.element_bytes : 0;
    if (ours && is_for_rounds(function, bytes, comm)) {
      return serve_round(function, bytes, comm, request, plan, pass);
    }
    return start_or_pass(
        function, bytes, comm, request, if_large(bytes),
        [&](const CommunicatorEntry&) -> Call {
          return [reduce, how = *reduction](Collectives& team) { reduce(team, how); };
        },
        pass);
  } catch (const std::bad_alloc&) {  // of this rank: the others start it
    const FoundElements elements = elements_of(type);
    const std::size_t bytes =
        elements && count >= 0 ? static_cast<std::size_t>(count) * elements->bytes : 0;
    return start_or_pass(
        function, bytes, comm, request, if_large(bytes),
        [](const CommunicatorEntry&) -> Call { throw std::bad_alloc(); }, pass);
  }
}

}  // namespace

namespace serve {

int Ibcast(void* data, int count, Word type, int root, Word comm, void* request) {
  const Side side(data, count, type);
  return start_or_pass(
      Function::ibcast, bytes_of(side), comm, request, if_large(bytes_of(side)),
      [&](const CommunicatorEntry& on) -> Call {
        if (root < 0 || root >= on.size) return nullptr;
        return [=, elements = keep(side)](Collectives& team) {
          typed::broadcast(team, {data, static_cast<std::size_t>(count), elements->get()}, root);
        };
      },
      [&] { return next.Ibcast(data, count, type, root, comm, request); });
}

int Ireduce(const void* send, void* receive, int count, Word type, Word op, int root, Word comm,
            void* request) {
  const CommunicatorEntry* entry = entry_as_it_is(clean(comm));
  const bool good = entry != nullptr && root >= 0 && root < entry->size;
  return start_reduction(
      Function::ireduce, good ? count : -1, type, op, comm, request,
      [&](const Collectives& team) {
        return plan_reduce(team, {send, receive, type, op}, count, root);
      },
      [=](Collectives& team, const typed::Reduction& how) {
        typed::reduce(team, send, receive, static_cast<std::size_t>(count), how, root);
      },
      [&] { return next.Ireduce(send, receive, count, type, op, root, comm, request); });
}

int Iallreduce(const void* send, void* receive, int count, Word type, Word op, Word comm,
               void* request) {
  return start_reduction(
      Function::iallreduce, count, type, op, comm, request,
      [&](const Collectives& team) {
        return plan_allreduce(team, {send, receive, type, op}, count);
      },
      [=](Collectives& team, const typed::Reduction& how) {
        typed::allreduce(team, send, receive, static_cast<std::size_t>(count), how);
      },
      [&] { return next.Iallreduce(send, receive, count, type, op, comm, request); });
}

int Ireduce_scatter_block(const void* send, void* receive, int count, Word type, Word op, Word comm,
                          void* request) {
  return start_reduction(
      Function::ireduce_scatter_block, count, type, op, comm, request,
      [&](const Collectives& team) {
        const std::vector<std::int64_t> parts(static_cast<std::size_t>(team.size()), count);
        return plan_reduce_scatter(team, {send, receive, type, op}, parts);
      },
      [=](Collectives& team, const typed::Reduction& how) {
        typed::reduce_scatter_block(team, send, receive, static_cast<std::size_t>(count), how);
      },
      [&] { return next.Ireduce_scatter_block(send, receive, count, type, op, comm, request); });
}

int Iallgather(const void* send, int send_count, Word send_type, void* receive, int receive_count,
               Word receive_type, Word comm, void* request) {
  const Side to(receive, receive_count, receive_type);
  return start_or_pass(
      Function::iallgather, bytes_of(to), comm, request, if_large(bytes_of(to)),
      [&](const CommunicatorEntry&) -> Call {
        const bool stays = is_in_place(send);
        const Side from(send, stays ? 0 : send_count, stays ? receive_type : send_type);
        if (!from.usable()) return nullptr;
        return [=, sent = keep(from), received = keep(to)](Collectives& team) {
          typed::allgather(team, {send, static_cast<std::size_t>(send_count), sent->get()},
                           {receive, static_cast<std::size_t>(receive_count), received->get()});
        };
      },
      [&] {
        return next.Iallgather(send, send_count, send_type, receive, receive_count, receive_type,
                               comm, request);
      });
}

int Ialltoall(const void* send, int send_count, Word send_type, void* receive, int receive_count,
              Word receive_type, Word comm, void* request) {
  const Side to(receive, receive_count, receive_type);
  return start_or_pass(
      Function::ialltoall, bytes_of(to), comm, request, if_large(bytes_of(to)),
      [&](const CommunicatorEntry&) -> Call {
        const bool stays = is_in_place(send);
        const Side from(send, stays ? 0 : send_count, stays ? receive_type : send_type);
        if (!from.usable()) return nullptr;
        return [=, sent = keep(from), received = keep(to)](Collectives& team) {
          typed::alltoall(team, {send, static_cast<std::size_t>(send_count), sent->get()},
                          {receive, static_cast<std::size_t>(receive_count), received->get()});
        };
      },
      [&] {
        return next.Ialltoall(send, send_count, send_type, receive, receive_count, receive_type,
                              comm, request);
      });
}

}  // namespace serve
}  // namespace ropewalk::preload
