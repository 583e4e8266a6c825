#include "collectives/arrivals.hpp"

#include <unistd.h>

#include <iterator>
#include <string>
#include <utility>

#include "collectives/operation.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::collectives {
namespace {

// This is the header of a rank whose arguments were refused. It differs from every proper one.
constexpr std::uint64_t refused_call = ~std::uint64_t{0};
// This is the header of a rank whose communicator was ended by an exception.
constexpr std::uint64_t no_more_calls = ~std::uint64_t{1};

bool reduces(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::reduce || kind == Kind::scan ||
         kind == Kind::exscan || kind == Kind::reduce_scatter;
}
bool has_root(Kind kind) {
  return kind == Kind::reduce || kind == Kind::broadcast || kind == Kind::gather ||
         kind == Kind::scatter;
}

// Of a reduction, what it combines and how.
std::string describe_elements(std::uint64_t count, std::uint32_t code) {
  const std::string elements = " of " + std::to_string(count) + " elements";
  if (Operation::is_by_mpi(code)) return elements + " by an operation or type of MPI's own";
  const char* const operation =
      code >> 22 != 0 ? "average" : ropewalk::name(static_cast<ReductionOp>(code & 0xff));
  return elements + " of type " + ropewalk::name(static_cast<ElementType>(code >> 8 & 0x3f)) +
         ", operation " + operation;
}

std::string describe(const node::Slot& slot) {
  if (slot.call == refused_call) return "a call whose arguments were refused there";
  if (slot.call == no_more_calls) {
    return "nothing more, it has ended its communicator by an exception or with its program";
  }
  const auto kind = static_cast<Kind>(slot.call >> 56);
  const auto code = static_cast<std::uint32_t>(slot.call >> 32 & 0xffffff);
  const auto form = static_cast<std::uint32_t>(slot.call);
  std::string text = name(kind);
  if (reduces(kind)) {
    text += describe_elements(slot.count, code);
  } else if (slot.count != 0) {
    text += " of " + std::to_string(slot.count) + " bytes";
  } else if (code != 0) {
    text += " with counts of each rank";
  }
  if (has_root(kind)) return text + ", root " + std::to_string(form);
  // Buckets of plans are numbered from 1, so that other allreduces have none.
  if (kind == Kind::allreduce && form != 0) return text + ", bucket " + std::to_string(form - 1);
  // The form of an allgather is made of all its counts.
  if (kind == Kind::allgather && form != 0) return text + " at most, by counts for all ranks";
  return form != 0 ? text + ", form " + std::to_string(form) : text;
}

}  // namespace

const char* name(Kind kind) {
  constexpr const char* names[] = {"none",    "barrier",        "allreduce", "reduce",    "scan",
                                   "exscan",  "reduce_scatter", "broadcast", "allgather", "gather",
                                   "scatter", "alltoall",       "neighbours"};
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(names) ? names[index] : "unknown collective";
}

void Arrivals::refuse() {
  if (team_.size() == 1) return;
  team_.slots().claim();
  refuse_claimed();
}

void Arrivals::refuse_claimed() { arrive_with(refused_call); }

void Arrivals::leave_for_good() {
  if (team_.size() == 1 || team_.process_id(team_.rank()) != getpid()) return;
  team_.slots().claim();
  arrive_with(no_more_calls);
}

void Arrivals::arrive_with(std::uint64_t call) {
  node::Slot& own = team_.slots().claimed();
  own.call = call;
  own.count = 0;
  team_.slots().arrive();
}

void Arrivals::mismatch(const node::Slot& own) {
  const int peer = std::exchange(differs_, -1);
  const node::Slot& other = team_.slots().arrival(peer);
  throw Error(ErrorCode::argument, "collective: rank " + std::to_string(team_.rank()) + " calls " +
                                       describe(own) + " while rank " + std::to_string(peer) +
                                       " calls " + describe(other) +
                                       "; all ranks must make the same call");
}

}  // namespace ropewalk::collectives
