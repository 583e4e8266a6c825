#include "irregular/random_exchanges.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "ropewalk/irregular_halo.hpp"

namespace ropewalk::test {
namespace {

using Random = std::mt19937_64;

int below(Random& random, int end) {
  return static_cast<int>(random() % static_cast<unsigned>(end));
}

// An element that travels, from the array of one rank to that of another.
struct Journey {
  int from;
  int to;
  std::int64_t index;  // at the sender
  std::int64_t place;  // at the receiver
};

// All of a halo. Every rank makes the same one from the same numbers.
struct Case {
  Case(Random& random, int ranks);
  std::vector<Neighbor> neighbors(int rank) const;

  std::size_t element_bytes;
  std::vector<int> elements;  // of each rank
  std::vector<Journey> journeys;
  std::vector<std::pair<int, int>> strangers;  // who list each other and exchange nothing
};

Case::Case(Random& random, int ranks) {
  constexpr std::array<std::size_t, 7> sizes = {1, 2, 4, 8, 12, 16, 40};
  element_bytes = sizes[random() % sizes.size()];
  const int most = std::array{5, 60, 3000}[random() % 3];
  for (int rank = 0; rank < ranks; ++rank) elements.push_back(below(random, most + 1));
  const bool in_runs = random() % 2 == 0;
  for (int to = 0; to < ranks; ++to) {
    const int count = elements[static_cast<std::size_t>(to)];
    std::vector<std::int64_t> places(static_cast<std::size_t>(count));
    std::iota(places.begin(), places.end(), 0);
    if (!in_runs) std::shuffle(places.begin(), places.end(), random);
    places.resize(static_cast<std::size_t>(below(random, count + 1)));
    int from = below(random, ranks);
    std::int64_t index = 0;
    for (const std::int64_t place : places) {
      if (!in_runs || random() % 20 == 0) from = below(random, ranks);
      const int there = elements[static_cast<std::size_t>(from)];
      if (there == 0) continue;
      index = in_runs ? (index + 1) % there : below(random, there);
      journeys.push_back({from, to, index, place});
    }
  }
  for (int pair = below(random, 3); pair > 0; --pair) {
    strangers.emplace_back(below(random, ranks), below(random, ranks));
  }
}

std::vector<Neighbor> Case::neighbors(int rank) const {
  std::vector<Neighbor> made;
  const auto with = [&](int peer) -> Neighbor& {
    const auto found = std::find_if(made.begin(), made.end(),
                                    [&](const Neighbor& each) { return each.rank == peer; });
    if (found != made.end()) return *found;
    made.push_back({peer, {}, {}});
    return made.back();
  };
  for (const Journey& one : journeys) {
    if (one.from == rank) with(one.to).send.push_back(one.index);
    if (one.to == rank) with(one.from).receive.push_back(one.place);
  }
  for (const auto& [first, second] : strangers) {
    if (first == rank) with(second);
    if (second == rank) with(first);
  }
  return made;
}

using Array = std::vector<std::uint8_t>;

// The arrays of all ranks before the call.
std::vector<Array> contents(const Case& one, std::uint64_t number) {
  std::vector<Array> made;
  for (std::size_t rank = 0; rank < one.elements.size(); ++rank) {
    Random random(number * 1000 + rank);
    Array array(static_cast<std::size_t>(one.elements[rank]) * one.element_bytes);
    for (std::uint8_t& byte : array) byte = static_cast<std::uint8_t>(random());
    made.push_back(std::move(array));
  }
  return made;
}

class Checker {
 public:
  Checker(const Case& of, int rank, IrregularHalo& halo) : case_(of), rank_(rank), halo_(halo) {}

  bool exchange(std::uint64_t number, Random& own) {
    const std::vector<Array> before = contents(case_, number);
    Array array = mine(before);
    Array expected = array;
    halo_.start(array.data());
    if (own() % 2 == 0) overwrite_sent(array, expected);
    for (const Journey& one : case_.journeys) {
      if (one.to == rank_) copy(expected, one.place, before[at(one.from)], one.index);
    }
    if (own() % 2 == 0) {
      while (!halo_.test()) {
      }
    }
    halo_.wait();
    return array == expected;
  }

  // Bytes are combined by exclusive or, so that their order does not matter.
  bool combine(std::uint64_t number) {
    const std::vector<Array> before = contents(case_, number);
    Array array = mine(before);
    Array expected = array;
    for (const Journey& one : case_.journeys) {
      if (one.from != rank_) continue;
      const auto* value = before[at(one.to)].data() + offset(one.place);
      for (std::size_t i = 0; i < case_.element_bytes; ++i) {
        expected[offset(one.index) + i] ^= value[i];
      }
    }
    halo_.combine(array.data(), ElementType::uint8, ReductionOp::bxor);
    return array == expected;
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  std::size_t offset(std::int64_t index) const {
    return static_cast<std::size_t>(index) * case_.element_bytes;
  }
  // An array that is never null, where there are no elements either.
  Array mine(const std::vector<Array>& arrays) const {
    Array array = arrays[at(rank_)];
    array.reserve(1);
    return array;
  }
  void copy(Array& to, std::int64_t place, const Array& from, std::int64_t index) const {
    std::memcpy(to.data() + offset(place), from.data() + offset(index), case_.element_bytes);
  }
  // What was sent may be changed once start() has returned, unless it is also received.
  void overwrite_sent(Array& array, Array& expected) const {
    std::vector<bool> received(at(case_.elements[at(rank_)]));
    for (const Journey& one : case_.journeys) {
      if (one.to == rank_) received[static_cast<std::size_t>(one.place)] = true;
    }
    for (const Journey& one : case_.journeys) {
      if (one.from != rank_ || received[static_cast<std::size_t>(one.index)]) continue;
      array[offset(one.index)] = expected[offset(one.index)] = 77;
    }
  }

  const Case& case_;
  int rank_;
  IrregularHalo& halo_;
};

}  // namespace

std::string random_exchanges(Communicator communicator, std::uint64_t seed, int rounds) {
  const int rank = communicator.rank();
  Random shared(seed);
  Random own(seed + 1 + static_cast<std::uint64_t>(rank));
  std::string problem;  // told at the end, since the other ranks go on
  for (int round = 0; round < rounds; ++round) {
    const Case one(shared, communicator.size());
    IrregularHalo halo(communicator, one.neighbors(rank),
                       static_cast<std::size_t>(one.elements[static_cast<std::size_t>(rank)]),
                       one.element_bytes);
    Checker checker(one, rank, halo);
    for (int call = 0; call < 12; ++call) {
      const std::uint64_t number = shared();
      const bool is_combination = shared() % 3 == 0;
      if (is_combination ? checker.combine(number) : checker.exchange(number, own)) continue;
      if (!problem.empty()) continue;
      problem = "seed " + std::to_string(seed) + ", round " + std::to_string(round) + ", call " +
                std::to_string(call) + (is_combination ? ", combine" : ", exchange") +
                ": wrong elements on rank " + std::to_string(rank);
    }
  }
  return problem;
}

}  // namespace ropewalk::test
