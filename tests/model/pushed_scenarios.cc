#include "model/pushed_scenarios.hpp"

#include <array>

#include "collectives/algorithms.hpp"
#include "model/tokens.hpp"

namespace ropewalk::model {
namespace {

// Where `only` is a rank, the receive buffer of this rank alone is seen, and the others read a copy
// that was postponed.
void pushed_exchange(Rank& rank, int call, int only) {
  constexpr std::size_t count = copied_count;
  std::array<Element, count> send{};
  std::array<Element, count * max_ranks> own{};
  const Shared shared(count * max_ranks);
  const bool seen = only < 0 || only == rank.rank;
  const Equal equal(rank, sizeof send);
  rank.begin_call();
  for (std::size_t index = 0; index < count; ++index) send[index] = token(rank.rank, call, index);
  Element* receive = seen ? shared.data() : own.data();
  collectives::allgather(rank.engine, send.data(), receive, equal.blocks());
  for (int peer = 0; peer < rank.size; ++peer) {
    const std::size_t begin = static_cast<std::size_t>(peer) * count;
    if (seen) shared.expect_filled(begin, begin + count, peer, call);
    for (std::size_t index = 0; !seen && index < count; ++index) {
      expect(own[begin + index], token(peer, call, index));
    }
  }
}

}  // namespace

void pushed_allgathers(Rank& rank) {
  pushed_exchange(rank, 0, -1);
  pushed_exchange(rank, 1, 0);
  if (rank.size == 2) pushed_exchange(rank, 2, -1);
}
void pushed_alltoall(Rank& rank) {
  constexpr std::size_t count = copied_count;
  std::array<Element, count * max_ranks> send{};
  const Shared receive(count * max_ranks);
  for (int call = 0; call < 2; ++call) {
    rank.begin_call();
    for (std::size_t index = 0; index < send.size(); ++index) {
      send[index] = token(rank.rank, call, index % count);
    }
    collectives::alltoall(rank.engine, send.data(), receive.data(), count * sizeof(Element));
    for (int peer = 0; peer < rank.size; ++peer) {
      const std::size_t begin = static_cast<std::size_t>(peer) * count;
      receive.expect_filled(begin, begin + count, peer, call);
    }
  }
}
// A root or a sender that finds the other there writes; otherwise it copies.
void pushed_broadcasts(Rank& rank) {
  std::array<Element, copied_count> own{};
  const Shared shared(copied_count);
  for (int call = 0; call < 3; ++call) {
    const int root = call / 2;
    rank.begin_call();
    for (std::size_t index = 0; index < own.size(); ++index) own[index] = token(root, call, index);
    void* data = rank.rank == root ? static_cast<void*>(own.data()) : shared.data();
    collectives::broadcast(rank.engine, data, sizeof own, root);
    if (rank.rank != root) shared.expect_filled(0, copied_count, root, call);
  }
}
void pushed_gathers_and_scatters(Rank& rank) {
  constexpr std::size_t count = 2 * copied_count;  // too many bytes for a root's slot
  std::array<Element, count * max_ranks> own{};
  const Shared receive(count * max_ranks);
  const Equal equal(rank, count * sizeof(Element));
  const collectives::Blocks blocks = equal.blocks();
  const bool root = rank.rank == 0;
  for (int call = 0; call < 4; call += 2) {
    rank.begin_call();
    for (std::size_t index = 0; index < own.size(); ++index) {
      own[index] = token(rank.rank, call, index);
    }
    collectives::gather(rank.engine, own.data(), count * sizeof(Element), receive.data(),
                        root ? &blocks : nullptr, 0);
    for (std::size_t peer = 0; root && peer < static_cast<std::size_t>(rank.size); ++peer) {
      receive.expect_filled(peer * count, (peer + 1) * count, static_cast<int>(peer), call);
    }
    rank.begin_call();
    for (std::size_t index = 0; index < own.size(); ++index) {
      own[index] = token(rank.rank, call + 1, index % count);
    }
    collectives::scatter(rank.engine, own.data(), root ? &blocks : nullptr, receive.data(),
                         count * sizeof(Element), 0);
    receive.expect_filled(0, count, 0, call + 1);
    if (rank.size > 2) return;  // more would take seconds
  }
}

}  // namespace ropewalk::model
