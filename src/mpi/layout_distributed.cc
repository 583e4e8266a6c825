// What a process has of an array that MPI_Type_create_darray distributes over a grid of processes.
//
// Every distribution of a dimension is cyclic (MPI 5.0, section 5.1.4): blocks of one length go
// round the processes of that dimension. Of MPI_DISTRIBUTE_BLOCK each process has one block, of
// MPI_DISTRIBUTE_NONE there is one process.
#include <algorithm>

#include "mpi/layout.hpp"
#include "mpi/library.hpp"

namespace ropewalk::mpi {
namespace {

// What judges a type walks over its rows.
constexpr Count most_rows = Count{1} << 20;

Count rounded_up(Count number, Count unit) { return (number + unit - 1) / unit; }

}  // namespace

// Of a dimension, the elements that this process has.
struct TypeLayout::Dimension {
  Count size = 0;       // of the whole array
  Count processes = 0;  // along this dimension
  Count place = 0;      // of this process among them
  Count block = 0;      // elements

  Count step() const noexcept { return block * processes; }
  Count first() const noexcept { return std::min(place * block, size); }
  Count blocks() const noexcept { return rounded_up(size - first(), step()); }
  // The number of elements of the block that begins there.
  Count length(Count begin) const noexcept { return std::min(block, size - begin); }
  Count elements() const noexcept {
    const Count count = blocks();
    return count == 0 ? 0 : (count - 1) * block + length(first() + (count - 1) * step());
  }
  // The element behind this one: in its block, else the first of the next block.
  Count behind(Count element) const noexcept {
    const Count in_block = element % block;
    return in_block + 1 < block ? element + 1 : element - in_block + step();
  }
};

// The numbers are the count of processes, the rank, the dimensions n, and then n each: sizes,
// distributions, their arguments, processes; and the order. With large counts the sizes come last.
// The grid of processes is row-major in either order of the array.
std::vector<TypeLayout::Dimension> TypeLayout::dimensions_of_distributed() const {
  const Abi& abi = library().abi;
  const auto count = static_cast<std::size_t>(numbers_.at(2));
  const std::size_t kinds = large_ ? 3 : 3 + count;
  const std::size_t sizes = large_ ? 4 + 3 * count : 3;
  Count processes = numbers_.at(0);
  Count rank = numbers_.at(1);
  std::vector<Dimension> all;
  for (std::size_t d = 0; d < count; ++d) {
    Dimension one{.size = numbers_.at(sizes + d), .processes = numbers_.at(kinds + 2 * count + d)};
    processes /= one.processes;
    one.place = rank / processes;
    rank %= processes;
    const Count kind = numbers_.at(kinds + d);
    const Count argument = numbers_.at(kinds + count + d);
    if (kind == abi.distribute_none) {
      one.block = one.size;
    } else if (argument != abi.distribute_default) {
      one.block = argument;
    } else {
      one.block = kind == abi.distribute_block ? rounded_up(one.size, one.processes) : 1;
    }
    all.push_back(one);
  }
  // From here on, the last dimension is the one whose elements lie side by side.
  if (numbers_.at(kinds + 3 * count) != abi.order_c) std::reverse(all.begin(), all.end());
  return all;
}

bool TypeLayout::is_too_long() const {
  const std::vector<Dimension> all = dimensions_of_distributed();
  Count rows = all.back().blocks();
  for (std::size_t d = 0; d + 1 < all.size(); ++d) {
    const Count elements = all[d].elements();
    if (elements != 0 && rows > most_rows / elements) return true;
    rows *= elements;
  }
  return rows > most_rows;
}

bool TypeLayout::for_each_of_distributed(const std::function<bool(const Row&)>& visit) const {
  const std::vector<Dimension> all = dimensions_of_distributed();
  std::vector<Count> at;  // the element of each dimension
  for (const Dimension& one : all) {
    if (one.elements() == 0) return true;
    at.push_back(one.first());
  }
  const Dimension& last = all.back();
  while (true) {
    Count row = 0;
    for (std::size_t d = 0; d + 1 < all.size(); ++d) row = row * all[d].size + at[d];
    for (Count begin = last.first(); begin < last.size; begin += last.step()) {
      const Count first = row * last.size + begin;
      if (!visit({0, first * parts_.at(0).extent_.bytes, last.length(begin)})) return false;
    }
    std::size_t d = all.size() - 1;
    while (d > 0 && (at[d - 1] = all[d - 1].behind(at[d - 1])) >= all[d - 1].size) {
      --d;
      at[d] = all[d].first();
    }
    if (d == 0) return true;
  }
}

}  // namespace ropewalk::mpi
