// Who sends and receives what.
#include <algorithm>

#include "generator/cases.hpp"

namespace generator {
namespace {

class Planner {
 public:
  Planner(const Catalogue& catalogue, const Case& drawn, int rank, int ranks)
      : case_(drawn),
        agreed_(drawn.agreed_type(catalogue)),
        rank_(rank),
        ranks_(ranks),
        self_(static_cast<std::uint64_t>(rank)),
        count_(drawn.count(agreed_, ranks)) {
    plan_.send.type = &drawn.type_of(catalogue, rank, 0);
    plan_.receive.type = &drawn.type_of(catalogue, rank, 1);
  }

  Plan make() {
    if (case_.reduces()) {
      plan_reduction();
    } else if (case_.collective >= Collective::gather && case_.collective <= Collective::scatterv) {
      plan_rooted();
    } else {
      plan_movement();
    }
    return plan_;
  }

 private:
  int count(std::uint64_t from, std::uint64_t to) const {
    return case_.count(agreed_, ranks_, from, to);
  }
  bool at_root() const { return rank_ == case_.root(ranks_); }
  static int elements(const Side& side, int count) { return count * side.type->repeat; }

  static void one(Side& side, int count) { side.blocks = {{0, elements(side, count)}}; }
  void equal(Side& side) const {
    for (int i = 0; i < ranks_; ++i) {
      side.blocks.push_back({std::int64_t{i} * elements(side, count_), elements(side, count_)});
    }
  }

  // Blocks in any order, or backwards, apart from each other; MPI's also before the buffer.
  template <class Count>
  void apart(Side& side, std::uint64_t salt, const Count& block_count) const {
    side.by_vector = true;
    const bool backwards = case_.hash(24, salt) % 4 == 0;
    const bool shuffled = case_.hash(24, salt) % 4 > 1;
    std::vector<int> order(static_cast<std::size_t>(ranks_));
    for (int i = 0; i < ranks_; ++i) order[static_cast<std::size_t>(i)] = i;
    if (backwards) std::reverse(order.begin(), order.end());
    if (shuffled) {
      std::sort(order.begin(), order.end(), [&](int a, int b) {
        return case_.hash(31, salt << 8 ^ unsigned(a)) < case_.hash(31, salt << 8 ^ unsigned(b));
      });
    }
    auto next = static_cast<std::int64_t>(case_.hash(25, salt) % 40);
    next = case_.of == Interface::mpi ? next - 30 : next % 4;
    side.blocks.resize(order.size());
    for (const int i : order) {
      const int now = elements(side, block_count(static_cast<std::uint64_t>(i)));
      // A block of nothing may lie anywhere.
      const bool anywhere = now == 0 && case_.nothing;
      side.blocks[static_cast<std::size_t>(i)] = {anywhere ? -(1 << 28) : next, now};
      next += now + static_cast<std::int64_t>(case_.hash(26, salt << 8 ^ unsigned(i)) % 4);
    }
  }

  void plan_reduction() {
    Side& send = plan_.send;
    const Shares of = shares(case_, agreed_, ranks_);
    send.stays = case_.in_place;
    if (case_.collective == Collective::reduce) {
      send.stays = case_.in_place && at_root();
      plan_.receive.significant = at_root();
    }
    const int all = case_.scatters() ? of.all() : count_;
    const int result = case_.scatters() ? of.each[static_cast<std::size_t>(rank_)] : count_;
    one(send, all);
    one(plan_.receive, send.stays ? all : result);
  }

  void plan_rooted() {
    const bool gathers =
        case_.collective == Collective::gather || case_.collective == Collective::gatherv;
    const bool vectors =
        case_.collective == Collective::gatherv || case_.collective == Collective::scatterv;
    Side& single = gathers ? plan_.send : plan_.receive;
    Side& many = gathers ? plan_.receive : plan_.send;
    single.stays = case_.in_place && at_root();
    many.significant = at_root();
    one(single, vectors ? count(0, self_) : count_);
    if (vectors) {
      apart(many, 1, [&](std::uint64_t i) { return count(0, i); });
    } else {
      equal(many);
    }
  }

  void plan_movement() {
    Side& send = plan_.send;
    Side& receive = plan_.receive;
    send.stays = case_.in_place;
    switch (case_.collective) {
      case Collective::bcast:
        send.significant = send.stays = false;
        return one(receive, count_);
      case Collective::allgather:
        one(send, count_);
        return equal(receive);
      case Collective::allgatherv:
        one(send, count(0, self_));
        return apart(receive, 1 + self_, [&](std::uint64_t i) { return count(0, i); });
      case Collective::alltoall:
        equal(send);
        return equal(receive);
      case Collective::alltoallv:
        apart(send, 100 + self_, [&](std::uint64_t i) { return count(self_, i); });
        // In place, what goes there is as much as what comes from there.
        return apart(receive, 200 + self_, [&](std::uint64_t i) {
          return case_.in_place ? count(std::min(self_, i), std::max(self_, i)) : count(i, self_);
        });
      default:
        send.significant = receive.significant = send.stays = false;
    }
  }

  const Case& case_;
  const Type& agreed_;
  int rank_;
  int ranks_;
  std::uint64_t self_;
  int count_;
  Plan plan_;
};

}  // namespace

Plan plan(const Catalogue& catalogue, const Case& drawn, int rank, int ranks) {
  return Planner(catalogue, drawn, rank, ranks).make();
}

int Shares::before(int rank) const {
  int sum = 0;
  for (int i = 0; i < rank; ++i) sum += each[static_cast<std::size_t>(i)];
  return sum;
}

Shares shares(const Case& drawn, const Type& type, int ranks) {
  Shares result;
  for (int i = 0; i < ranks; ++i) {
    const int count = drawn.collective == Collective::reduce_scatter
                          ? drawn.count(type, ranks, 0, static_cast<std::uint64_t>(i))
                          : drawn.count(type, ranks);
    result.each.push_back(count);
  }
  return result;
}

}  // namespace generator
