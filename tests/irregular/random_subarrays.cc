#include "irregular/random_subarrays.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "ropewalk/subarray_exchange.hpp"

namespace ropewalk::test {
namespace {

using Random = std::mt19937_64;
using Array = std::vector<std::uint8_t>;

std::size_t below(Random& random, std::size_t end) {
  return static_cast<std::size_t>(random() % end);
}

// Puts a part behind those that are in the array, with gaps between elements, and with dimensions
// that lie in the array in any order.
Subarray place(Random& random, const std::vector<std::size_t>& extents, std::size_t element_bytes,
               std::size_t& end) {
  std::vector<std::size_t> order(extents.size());
  std::iota(order.begin(), order.end(), 0U);
  if (random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
  Subarray part{end + below(random, 20), extents, extents};
  std::size_t stride = element_bytes * (random() % 4 == 0 ? 2 : 1);
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    part.strides[*d] = stride;
    stride *= extents[*d] + below(random, 2);
  }
  end = part.offset + stride;
  return part;
}

// All of an exchange. Every rank makes the same one from the same numbers.
struct PartsCase {
  PartsCase(Random& random, std::size_t ranks);

  std::size_t element_bytes;
  std::vector<ArrayParts> sent;  // of each rank
  std::vector<ArrayParts> received;
};

PartsCase::PartsCase(Random& random, std::size_t ranks) : sent(ranks), received(ranks) {
  constexpr std::array<std::size_t, 6> sizes = {1, 4, 8, 12, 16, 40};
  element_bytes = sizes[below(random, sizes.size())];
  const std::size_t longest = std::array<std::size_t, 2>{3, 9}[below(random, 2)];
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      std::vector<std::size_t> extents(below(random, 5));
      for (std::size_t& extent : extents) extent = 1 + below(random, longest);
      if (!extents.empty() && random() % 8 == 0) extents[0] = 0;
      const std::size_t bytes = element_bytes;
      sent[from].parts.push_back(place(random, extents, bytes, sent[from].bytes));
      received[to].parts.push_back(place(random, extents, bytes, received[to].bytes));
    }
  }
}

// Calls visit(place of an element in the one array, in the other), for each element.
template <class Visit>
void for_each_element(const Subarray& from, const Subarray& to, const Visit& visit) {
  std::size_t count = from.extents.empty() ? 0 : 1;
  for (const std::size_t extent : from.extents) count *= extent;
  for (std::size_t element = 0; element < count; ++element) {
    std::size_t rest = element;
    std::size_t source = from.offset;
    std::size_t destination = to.offset;
    for (std::size_t d = from.extents.size(); d-- > 0;) {
      source += rest % from.extents[d] * from.strides[d];
      destination += rest % from.extents[d] * to.strides[d];
      rest /= from.extents[d];
    }
    visit(source, destination);
  }
}

Array contents(std::uint64_t number, std::size_t rank, std::size_t bytes) {
  Random random(number * 1000 + rank);
  Array array(bytes + 1);  // never null
  for (std::uint8_t& byte : array) byte = static_cast<std::uint8_t>(random());
  return array;
}

// What the array of `rank` that receives should hold, element by element.
void foretell(const PartsCase& one, std::size_t rank, std::uint64_t number, Array& expected) {
  for (std::size_t from = 0; from < one.sent.size(); ++from) {
    const Array array = contents(number, from, one.sent[from].bytes);
    for_each_element(one.sent[from].parts[rank], one.received[rank].parts[from],
                     [&](std::size_t source, std::size_t destination) {
                       std::memcpy(expected.data() + destination, array.data() + source,
                                   one.element_bytes);
                     });
  }
}

}  // namespace

std::string random_subarrays(Communicator communicator, std::uint64_t seed, int rounds) {
  const auto rank = static_cast<std::size_t>(communicator.rank());
  Random shared(seed);
  std::string problem;  // told at the end, since the other ranks go on
  for (int round = 0; round < rounds; ++round) {
    const PartsCase one(shared, static_cast<std::size_t>(communicator.size()));
    SubarrayExchange exchange(communicator, one.element_bytes, one.sent[rank], one.received[rank]);
    Array expected(exchange.bytes());
    for (int call = 0; call < 5; ++call) {
      const std::uint64_t number = shared();
      Array array = contents(number, rank, one.sent[rank].bytes);
      exchange.exchange(array.data());
      std::fill(array.begin(), array.end(), std::uint8_t{77});
      foretell(one, rank, number, expected);
      if (std::memcmp(exchange.data(), expected.data(), expected.size()) == 0) continue;
      if (!problem.empty()) continue;
      problem = "seed " + std::to_string(seed) + ", round " + std::to_string(round) + ", call " +
                std::to_string(call) + ": wrong elements on rank " + std::to_string(rank);
    }
  }
  return problem;
}

}  // namespace ropewalk::test
