// alltoallw: every rank copies the part that each other has for it, of any type, from where it lies
// to where it belongs.
#include "collectives/algorithms.hpp"
#include "collectives/typed_parts.hpp"

namespace ropewalk::collectives {
namespace {

// The part of a rank for itself goes through its slot only where MPI has to pack or unpack it.
bool stays_here(const TypedPart& from, const TypedPart& to) {
  const auto known = [](const TypedPart& part) { return part.bytes() == 0 || part.pattern->known; };
  return known(from) && known(to) && from.bytes() == to.bytes();
}

}  // namespace

void alltoallw(Engine& engine, std::span<const TypedPart> sends,
               std::span<const TypedPart> receives, bool in_place) {
  const Scratch scratch(engine);
  alltoallw(engine, sends, receives, in_place, {});
}

void alltoallw(Engine& engine, std::span<const TypedPart> sends,
               std::span<const TypedPart> receives, bool in_place, const CallOverNodes& call) {
  const int rank = engine.rank();
  const auto own_part = static_cast<std::size_t>(rank);
  node::Slot& own = engine.arrivals().claim(Kind::alltoall, 0, 2);
  engine.path = Path::inlined;
  const bool stays = in_place || stays_here(sends[own_part], receives[own_part]);
  const ShownParts mine =
      show_parts(engine, own, sends, in_place, stays ? rank : -1, Landings::bytes(receives));
  const Landings landings(receives, mine.landings, stays ? rank : -1);
  const auto& shown = engine.meet(own, mine.shown);
  bool complete = true;
  int wrong = -1;
  for (int step = stays ? 1 : 0; step < engine.size(); ++step) {
    const int peer = (rank + step) % engine.size();
    const auto part = static_cast<std::size_t>(peer);
    const node::Slot& slot = peer == rank ? own : engine.arrivals().of(peer, own);
    const Taken taken = take_part(engine, peer, slot, own_part, receives[part], landings.of(part));
    complete &= taken != Taken::unreadable;
    if (taken == Taken::of_other_length) wrong = peer;
    call.go_on();
  }
  if (stays && !in_place) copy_part(engine, sends[own_part], receives[own_part]);
  engine.leave(shown, complete);
  landings.unpack();
  if (wrong >= 0) {
    throw Error(ErrorCode::argument, "receive_counts: rank " + std::to_string(call.rank_of(wrong)) +
                                         " sends another number of bytes than rank " +
                                         std::to_string(call.rank_of(rank)) + " expects from it");
  }
}

}  // namespace ropewalk::collectives
