#include "model/scenarios.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "collectives/algorithms.hpp"
#include "model/pushed_scenarios.hpp"
#include "model/rank.hpp"
#include "model/tokens.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::model {

namespace {

// ---- through the slots

void broadcast_one(Rank& rank, int call, int root) {
  rank.begin_call();
  Element data = rank.rank == root ? token(root, call) : 0;
  collectives::broadcast(rank.engine, &data, sizeof data, root);
  expect(data, token(root, call));
}
void reduce_one(Rank& rank, int call, int root) {
  rank.begin_call();
  const Element send = token(rank.rank, call);
  Element receive = 0;
  collectives::reduce(rank.engine, &send, &receive, 1, addition(), root);
  if (root < 0 || root == rank.rank) expect(receive, sum_of_tokens(rank.size, call));
}
void gather_one(Rank& rank, int call, int root) {
  rank.begin_call();
  const Element send = token(rank.rank, call);
  std::array<Element, max_ranks> receive{};
  const Equal equal(rank, sizeof send);
  const collectives::Blocks blocks = equal.blocks();
  collectives::gather(rank.engine, &send, sizeof send, receive.data(),
                      rank.rank == root ? &blocks : nullptr, root);
  for (int peer = 0; rank.rank == root && peer < rank.size; ++peer) {
    expect(receive[static_cast<std::size_t>(peer)], token(peer, call));
  }
}
void scatter_one(Rank& rank, int call, int root) {
  rank.begin_call();
  std::array<Element, max_ranks> send{};
  for (std::size_t peer = 0; peer < send.size(); ++peer) send[peer] = token(root, call, peer);
  Element receive = 0;
  const Equal equal(rank, sizeof receive);
  const collectives::Blocks blocks = equal.blocks();
  collectives::scatter(rank.engine, send.data(), rank.rank == root ? &blocks : nullptr, &receive,
                       sizeof receive, root);
  expect(receive, token(root, call, static_cast<std::size_t>(rank.rank)));
}
void allgather_one(Rank& rank, int call) {
  rank.begin_call();
  const Element send = token(rank.rank, call);
  std::array<Element, max_ranks> receive{};
  const Equal equal(rank, sizeof send);
  collectives::allgather(rank.engine, &send, receive.data(), equal.blocks());
  for (int peer = 0; peer < rank.size; ++peer) {
    expect(receive[static_cast<std::size_t>(peer)], token(peer, call));
  }
}
void alltoall_one(Rank& rank, int call) {
  rank.begin_call();
  std::array<Element, max_ranks> send{};
  std::array<Element, max_ranks> receive{};
  for (std::size_t peer = 0; peer < send.size(); ++peer) send[peer] = token(rank.rank, call, peer);
  collectives::alltoall(rank.engine, send.data(), receive.data(), sizeof(Element));
  for (int peer = 0; peer < rank.size; ++peer) {
    expect(receive[static_cast<std::size_t>(peer)],
           token(peer, call, static_cast<std::size_t>(rank.rank)));
  }
}

// What a rank wrote before a barrier, the others may read behind it.
void barriers(Rank& rank) {
  constexpr int calls = 5;
  constexpr std::size_t stride = sizeof(Element);
  auto* words = reinterpret_cast<Element*>(arena(0) + arena_bytes - stride * max_ranks * calls);
  for (int call = 0; call < calls; ++call) {
    rank.begin_call();
    Element* row = words + call * max_ranks;
    write(row + rank.rank, stride);
    row[rank.rank] = token(rank.rank, call);
    collectives::barrier(rank.engine);
    for (int peer = 0; peer < rank.size; ++peer) {
      read(row + peer, stride);
      expect(row[peer], token(peer, call));
    }
  }
}
int broadcasts(const Rank& rank) { return rank.size == 2 ? 6 : 5; }  // more would take seconds
void broadcasts_of_one_root(Rank& rank) {
  for (int call = 0; call < broadcasts(rank); ++call) broadcast_one(rank, call, 0);
}
void broadcasts_in_turn(Rank& rank) {
  for (int call = 0; call < broadcasts(rank); ++call) broadcast_one(rank, call, call % rank.size);
}
void allreduces(Rank& rank) {
  for (int call = 0; call < 5; ++call) reduce_one(rank, call, -1);
}
void reduces(Rank& rank) {
  for (int call = 0; call < 3; ++call) reduce_one(rank, call, 0);
  for (int call = 3; call < 5; ++call) reduce_one(rank, call, call % rank.size);
}
void gathers(Rank& rank) {
  for (int call = 0; call < 3; ++call) gather_one(rank, call, 0);
  for (int call = 3; call < 5; ++call) gather_one(rank, call, call % rank.size);
}
void scatters(Rank& rank) {
  for (int call = 0; call < 3; ++call) scatter_one(rank, call, 0);
  for (int call = 3; call < 5; ++call) scatter_one(rank, call, call % rank.size);
}
void allgathers_and_alltoalls(Rank& rank) {
  allgather_one(rank, 0);
  alltoall_one(rank, 1);
  allgather_one(rank, 2);
  alltoall_one(rank, 3);
}
void small_mix(Rank& rank) {
  broadcast_one(rank, 0, 0);
  gather_one(rank, 1, 1);
  scatter_one(rank, 2, 0);
  reduce_one(rank, 3, -1);
  reduce_one(rank, 4, 0);
  broadcast_one(rank, 5, 1);
}

// ---- between mapped buffers, which are filled anew as soon as a call has returned

constexpr std::size_t bulk = 48;  // elements; slices are cut at 16

void mapped_allreduces(Rank& rank) {
  Shared send(bulk);
  Shared receive(bulk);
  for (int call = 0; call < 3; ++call) {
    rank.begin_call();
    send.fill(rank.rank, call);
    collectives::reduce(rank.engine, send.data(), receive.data(), bulk, addition(), -1);
    receive.expect_sums(rank.size, call);
  }
}
void mapped_broadcasts(Rank& rank) {
  constexpr std::size_t count = 8192 / sizeof(Element);
  Shared data(count);
  for (int call = 0; call < 3; ++call) {
    const int root = call % rank.size;
    rank.begin_call();
    data.fill(rank.rank, call);
    collectives::broadcast(rank.engine, data.data(), count * sizeof(Element), root);
    data.expect_filled(0, count, root, call);
  }
}
void mapped_gathers_and_scatters(Rank& rank) {
  Shared send(bulk * max_ranks);
  Shared receive(bulk * max_ranks);
  const Equal equal(rank, bulk * sizeof(Element));
  const collectives::Blocks blocks = equal.blocks();
  const bool root = rank.rank == 0;
  for (int call = 0; call < 2; ++call) {
    rank.begin_call();
    send.fill(rank.rank, call);
    collectives::gather(rank.engine, send.data(), bulk * sizeof(Element), receive.data(),
                        root ? &blocks : nullptr, 0);
    for (std::size_t peer = 0; root && peer < static_cast<std::size_t>(rank.size); ++peer) {
      receive.expect_filled(peer * bulk, (peer + 1) * bulk, static_cast<int>(peer), call);
    }
    rank.begin_call();
    send.fill(0, call);
    collectives::scatter(rank.engine, send.data(), root ? &blocks : nullptr, receive.data(),
                         bulk * sizeof(Element), 0);
    read(receive.data(), sizeof(Element));
    expect(*receive.data(), token(0, call, bulk * static_cast<std::size_t>(rank.rank)));
  }
}
void mapped_exchanges(Rank& rank) {
  Shared send(bulk * max_ranks);
  Shared receive(bulk * max_ranks);
  const Equal equal(rank, bulk * sizeof(Element));
  const auto first_of = [&](int peer) {
    const Element* first = receive.data() + static_cast<std::size_t>(peer) * bulk;
    read(first, sizeof(Element));
    return *first;
  };
  send.fill(rank.rank, 0);
  collectives::allgather(rank.engine, send.data(), receive.data(), equal.blocks());
  for (int peer = 0; peer < rank.size; ++peer) expect(first_of(peer), token(peer, 0));
  for (int call = 1; call < 3; ++call) {
    rank.begin_call();
    send.fill(rank.rank, call);
    if (call == 1) {
      collectives::alltoall(rank.engine, send.data(), receive.data(), bulk * sizeof(Element));
    } else {
      collectives::alltoallv(rank.engine, send.data(), equal.blocks(), receive.data(),
                             equal.blocks());
    }
    for (int peer = 0; peer < rank.size; ++peer) {
      expect(first_of(peer), token(peer, call, static_cast<std::size_t>(rank.rank) * bulk));
    }
  }
}
// Ranks in a ring, or two in a line: whom a rank's blocks go to.
std::array<int, 2> neighbours_of(const Rank& rank) {
  const bool ring = rank.size > 2;
  const int below = rank.rank > 0 ? rank.rank - 1 : (ring ? rank.size - 1 : -1);
  const int above = rank.rank + 1 < rank.size ? rank.rank + 1 : (ring ? 0 : -1);
  return {below, above};
}
// A block to each neighbour: at once in a rank's slot, or read from where it lies.
void exchange_once(Rank& rank, int call, const Shared& send, const Shared& receive,
                   std::size_t count) {
  const std::array<int, 2> peers = neighbours_of(rank);
  const std::array<std::size_t, 2> counts{peers[0] < 0 ? 0 : count * sizeof(Element),
                                          peers[1] < 0 ? 0 : count * sizeof(Element)};
  const std::array<std::size_t, 2> places{0, bulk * sizeof(Element)};
  const collectives::Blocks blocks{counts.data(), places.data()};
  const std::array<collectives::IncomingBlock, 2> incoming{{{peers[0], 1}, {peers[1], 0}}};
  collectives::exchange_neighbours(rank.engine, {peers, incoming}, send.data(), blocks,
                                   receive.data(), blocks);
  for (std::size_t k = 0; k < 2; ++k) {
    if (peers[k] < 0) continue;
    const Element* block = receive.data() + k * bulk;
    read(block, count * sizeof(Element));
    for (std::size_t index = 0; index < count; ++index) {
      expect(block[index], token(peers[k], call, (k ^ 1U) * bulk + index));
    }
  }
}
void neighbours(Rank& rank) {
  const Shared receive(2 * bulk);
  for (int call = 0; call < (rank.size == 2 ? 5 : 3); ++call) {
    Shared send(2 * bulk);
    rank.begin_call();
    send.fill(rank.rank, call);
    exchange_once(rank, call, send, receive, 1);
  }
}
void mapped_neighbours(Rank& rank) {
  Shared send(2 * bulk);
  const Shared receive(2 * bulk);
  for (int call = 0; call < (rank.size == 2 ? 3 : 2); ++call) {
    rank.begin_call();
    send.fill(rank.rank, call);
    exchange_once(rank, call, send, receive, call == 1 ? 1 : bulk);
  }
}
void mapped_scans(Rank& rank) {
  Shared send(bulk);
  Shared receive(bulk);
  for (int call = 0; call < 3; ++call) {
    rank.begin_call();
    send.fill(rank.rank, call);
    collectives::scan(rank.engine, send.data(), receive.data(), bulk, addition(), false);
    read(receive.data(), sizeof(Element));
    expect(*receive.data(), sum_of_tokens(rank.rank + 1, call));
  }
}

// ---- private buffers, chunk by chunk

void staged_reduces(Rank& rank) {
  constexpr std::size_t count = 20;  // three chunks of eight elements, the last not full
  std::array<Element, count> send{};
  std::array<Element, count> receive{};
  for (int call = 0; call < (rank.size == 2 ? 2 : 1); ++call) {
    rank.begin_call();
    const int root = call == 0 ? -1 : 0;
    for (std::size_t index = 0; index < count; ++index) send[index] = token(rank.rank, call, index);
    collectives::reduce(rank.engine, send.data(), receive.data(), count, addition(), root);
    for (std::size_t index = 0; index < count && (root < 0 || root == rank.rank); ++index) {
      expect(receive[index], sum_of_tokens(rank.size, call, index));
    }
  }
}
void staged_broadcast_once(Rank& rank, int call, int root) {
  rank.begin_call();
  constexpr std::size_t count = node::Slot::payload_bytes / sizeof(Element) + 512;
  // Static: a fiber's stack is small, and one call is over on all ranks before the next begins.
  static std::array<std::array<Element, count>, max_ranks> data;
  auto& mine = data[static_cast<std::size_t>(rank.rank)];
  mine.fill(token(rank.rank, call));
  collectives::broadcast(rank.engine, mine.data(), sizeof mine, root);
  for (const Element element : mine) expect(element, token(root, call));
}
void staged_broadcasts(Rank& rank) {
  staged_broadcast_once(rank, 0, 0);
  if (rank.size > 2) return;  // more would take seconds
  staged_broadcast_once(rank, 1, 1);
  staged_broadcast_once(rank, 2, 1);
}
// The second call needs more staging memory than the first: areas move.
void staging_that_grows(Rank& rank) {
  staged_broadcast_once(rank, 0, 0);
  constexpr std::size_t count = 300;  // two chunks
  static std::array<std::array<Element, count>, max_ranks> sends;
  static std::array<std::array<Element, count>, max_ranks> receives;
  auto& send = sends[static_cast<std::size_t>(rank.rank)];
  auto& receive = receives[static_cast<std::size_t>(rank.rank)];
  rank.begin_call();
  send.fill(token(rank.rank, 1));
  collectives::reduce(rank.engine, send.data(), receive.data(), count, addition(), -1);
  for (const Element element : receive) expect(element, sum_of_tokens(rank.size, 1));
  if (rank.size == 2) staged_broadcast_once(rank, 2, 1);
}

// ---- private buffers that are copied beside the slots: senders do not wait

void copied_reduce_once(Rank& rank, int call, int root) {
  std::array<Element, copied_count> send{};
  std::array<Element, copied_count> receive{};
  rank.begin_call();
  send.fill(token(rank.rank, call));
  collectives::reduce(rank.engine, send.data(), receive.data(), copied_count, addition(), root);
  if (root >= 0 && root != rank.rank) return;
  for (const Element element : receive) expect(element, sum_of_tokens(rank.size, call));
}
void copied_reduces(Rank& rank) {
  const int calls = rank.size == 2 ? 4 : 3;
  for (int call = 0; call < calls; ++call) {
    copied_reduce_once(rank, call, call + 1 == calls ? -1 : 0);
  }
}
void copied_movements(Rank& rank) {
  std::array<Element, copied_count> data{};
  for (int call = 0; call < (rank.size == 2 ? 4 : 3); ++call) {
    rank.begin_call();
    data.fill(token(rank.rank, call));
    collectives::broadcast(rank.engine, data.data(), sizeof data, 0);
    for (const Element element : data) expect(element, token(0, call));
  }
  std::array<Element, copied_count * max_ranks> all{};
  rank.begin_call();
  data.fill(token(rank.rank, 4));
  const Equal equal(rank, sizeof data);
  const collectives::Blocks blocks = equal.blocks();
  collectives::gather(rank.engine, data.data(), sizeof data, all.data(),
                      rank.rank == 0 ? &blocks : nullptr, 0);
  for (int peer = 0; rank.rank == 0 && peer < rank.size; ++peer) {
    expect(all[static_cast<std::size_t>(peer) * copied_count], token(peer, 4));
  }
}

// Each copy fills a half of its owner's rooms: a sender that goes on comes round to those that are
// still read, and they grow.
void copies_that_go_round(Rank& rank) {
  constexpr std::size_t largest = 2 * node::Rooms::least_half / sizeof(Element);
  static std::array<std::array<Element, largest>, max_ranks> data;
  auto& mine = data[static_cast<std::size_t>(rank.rank)];
  for (int call = 0; call < (rank.size == 2 ? 5 : 4); ++call) {
    const std::size_t count = call < 3 ? largest * 3 / 8 : largest;
    rank.begin_call();
    std::fill_n(mine.begin(), count, token(rank.rank, call));
    collectives::broadcast(rank.engine, mine.data(), count * sizeof(Element), 0);
    expect(mine[0], token(0, call));
    expect(mine[count - 1], token(0, call));
  }
}

void large_mix(Rank& rank) {
  Shared send(bulk);
  Shared receive(bulk);
  broadcast_one(rank, 0, 0);
  rank.begin_call();
  send.fill(rank.rank, 1);
  collectives::reduce(rank.engine, send.data(), receive.data(), bulk, addition(), -1);
  receive.expect_sums(rank.size, 1);
  gather_one(rank, 2, 0);
  rank.begin_call();
  send.fill(rank.rank, 3);
  collectives::reduce(rank.engine, send.data(), receive.data(), bulk, addition(), 1);
  if (rank.rank == 1) receive.expect_sums(rank.size, 3);
  scatter_one(rank, 4, 1);
}

// Rank 0 makes another call than the others: all throw, nobody hangs, and the next call works.
void calls_that_differ(Rank& rank) {
  Element send = 1;
  Element receive = 0;
  bool thrown = false;
  try {
    if (rank.rank == 0) {
      collectives::barrier(rank.engine);
    } else {
      collectives::reduce(rank.engine, &send, &receive, 1, addition(), -1);
    }
  } catch (const Error&) {
    thrown = true;
  }
  if (!thrown) fail("does not notice that calls differ");
  reduce_one(rank, 1, -1);
  reduce_one(rank, 2, -1);
}

constexpr std::size_t large_chunk = 2048;
constexpr std::size_t copied = 256;

constexpr Scenario all[] = {
    {"barriers", barriers},
    {"broadcasts_of_one_root", broadcasts_of_one_root},
    {"broadcasts_in_turn", broadcasts_in_turn},
    {"allreduces", allreduces},
    {"reduces", reduces},
    {"gathers", gathers},
    {"scatters", scatters},
    {"allgathers_and_alltoalls", allgathers_and_alltoalls},
    {"small_mix", small_mix},
    {"mapped_allreduces", mapped_allreduces},
    {"mapped_broadcasts", mapped_broadcasts},
    {"mapped_gathers_and_scatters", mapped_gathers_and_scatters},
    {"neighbours", neighbours},
    {"mapped_neighbours", mapped_neighbours},
    {"mapped_exchanges", mapped_exchanges},
    {"mapped_scans", mapped_scans},
    {"staged_reduces", staged_reduces},
    {"staged_broadcasts", staged_broadcasts, large_chunk},
    {"staging_that_grows", staging_that_grows, large_chunk},
    {"copied_reduces", copied_reduces, 64, copied},
    {"copied_movements", copied_movements, 64, copied},
    {"copies_that_go_round", copies_that_go_round, 64, 2 * node::Rooms::least_half,
     node::Rooms::least_half / 2},
    {"pushed_allgathers", pushed_allgathers, 64, copied, 64, 1},
    {"pushed_alltoall", pushed_alltoall, 64, 2 * copied, 64, 1},
    {"pushed_broadcasts", pushed_broadcasts, 64, copied, 64, 1},
    {"pushed_gathers_and_scatters", pushed_gathers_and_scatters, 64, 4 * copied, 64, 1},
    {"large_mix", large_mix},
    {"calls_that_differ", calls_that_differ},
};

void three_broadcasts(Rank& rank) {
  for (int call = 0; call < 3; ++call) broadcast_one(rank, call, 0);
}
void three_reduces(Rank& rank) {
  for (int call = 0; call < 3; ++call) reduce_one(rank, call, call - 1);
}
void one_staged_reduce(Rank& rank) {
  constexpr std::size_t count = 10;
  const std::array<Element, count> send{};
  std::array<Element, count> receive{};
  rank.begin_call();
  collectives::reduce(rank.engine, send.data(), receive.data(), count, addition(), -1);
}

constexpr Scenario tiny[] = {
    {"three_broadcasts", three_broadcasts},
    {"three_reduces", three_reduces},
    {"one_staged_reduce", one_staged_reduce, 128},
};

}  // namespace

std::span<const Scenario> scenarios() { return all; }
std::span<const Scenario> tiny_scenarios() { return tiny; }

const Scenario* find_scenario(const char* name) {
  const auto found = std::ranges::find_if(
      all, [&](const Scenario& scenario) { return std::strcmp(scenario.name, name) == 0; });
  return found != std::end(all) ? found : nullptr;
}

}  // namespace ropewalk::model
