#include "cases.hpp"

#include <algorithm>

namespace test {
namespace {

std::uint64_t mix(std::uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

constexpr std::array<const char*, collectives> names = {"Barrier",
                                                        "Allreduce",
                                                        "Reduce",
                                                        "Scan",
                                                        "Exscan",
                                                        "Reduce_scatter",
                                                        "Reduce_scatter_block",
                                                        "Bcast",
                                                        "Allgather",
                                                        "Allgatherv",
                                                        "Gather",
                                                        "Gatherv",
                                                        "Scatter",
                                                        "Scatterv",
                                                        "Alltoall",
                                                        "Alltoallv"};

bool has_blocks(Collective collective) {
  return collective == Collective::reduce_scatter ||
         collective == Collective::reduce_scatter_block || collective >= Collective::allgather;
}

bool is_vector(Collective collective) {
  return collective == Collective::allgatherv || collective == Collective::gatherv ||
         collective == Collective::scatterv || collective == Collective::alltoallv;
}

// Around the sizes at which algorithms change, and between them.
std::size_t draw_bytes(std::uint64_t random) {
  constexpr std::array<std::size_t, 20> around = {0,    0,    4,    8,     16,    40,   40,
                                                  40,   120,  512,  512,   1024,  2048, 4096,
                                                  4096, 8192, 8192, 20000, 65536, 65536};
  const std::uint64_t dice = random % 100;
  if (dice < 2) return (random >> 8) % (std::size_t{2} << 20) + (std::size_t{1} << 20);
  if (dice < 8) return (random >> 8) % 200000;
  return around[(random >> 8) % around.size()];
}

}  // namespace

std::uint64_t Case::hash(std::uint64_t what, std::uint64_t index) const {
  return mix(seed ^ mix(what << 40 ^ index));
}

Case::Case(const Catalogue& catalogue, std::uint64_t number, std::size_t comms)
    : seed(number),
      comm(hash(2) % comms),
      collective(static_cast<Collective>(hash(3) % 33 * collectives / 33)),
      reduction(collective >= Collective::allreduce &&
                collective <= Collective::reduce_scatter_block),
      large(hash(4) % 3 == 0 && has_large()),
      // MPICH 5.0.2 cuts the pieces of an allgatherv by each rank's own extent, so that they do
      // not match.
      mixed(!reduction && hash(5) % 3 == 0 && collective != Collective::allgatherv),
      bottom(!reduction && !is_vector(collective) && hash(6) % 6 == 0),
      in_place(hash(7) % 4 == 0),
      nothing(hash(8) % 2 == 0),
      mpi_first(hash(9) % 2 == 0),
      type(hash(10) % catalogue.types.size()),
      op(0),
      target_bytes(draw_bytes(hash(11))) {
  const std::vector<std::size_t>& ints = catalogue.families[0];
  if (hash(12) % 5 == 0) type = ints[hash(13) % ints.size()];
  // MPICH 5.0.2 finds in its own binomial gather of these that signatures do not match.
  if (!reduction && catalogue.types[type].name == "MPI_LONG_DOUBLE_INT") type = ints[0];
  if (!reduction) return;
  std::vector<std::size_t> legal = catalogue.legal(catalogue.types[type]);
  for (std::uint64_t i = 0; legal.empty(); ++i) {
    type = hash(14, i) % catalogue.types.size();
    legal = catalogue.legal(catalogue.types[type]);
  }
  op = legal[hash(15) % legal.size()];
  // MPICH 5.0.2 ends the program for the copy of a derived type onto itself.
  if (scatters() && catalogue.types[type].of == Class::derived) in_place = false;
  // MPICH 5.0.2 gives wrong results, and writes beyond its memory, where these do not commute and a
  // type's lower bound is not 0.
  if (scatters() && catalogue.ops[op].operation == Operation::user_matrix) {
    type = ints[1];
  }
}

const Type& Case::type_of(const Catalogue& catalogue, int rank, int side) const {
  if (!mixed) return catalogue.types[type];
  const auto& family = catalogue.families[hash(16) % 4 == 0 ? 1 : 0];
  const auto index = static_cast<unsigned>(2 * rank + side);
  return catalogue.types[family[hash(17, index) % family.size()]];
}

// The same on all ranks, whatever their type: `type` is one that all agree on.
int Case::count(const Type& agreed, int ranks) const {
  const auto size = static_cast<std::size_t>(ranks);
  const std::size_t share =
      has_blocks(collective) && target_bytes > 4096 ? target_bytes / size : target_bytes;
  if (hash(18) % 10 == 0) return static_cast<int>(hash(19) % size);  // fewer
  const auto bytes =
      static_cast<std::size_t>(agreed.high - agreed.low) * static_cast<std::size_t>(agreed.repeat);
  const std::size_t around = bytes == 0 ? 9 : share / bytes;
  return static_cast<int>(around + hash(20) % 3);
}

int Case::count(const Type& agreed, int ranks, std::uint64_t from, std::uint64_t to) const {
  if (hash(21, from << 20 ^ to) % 8 == 0) return 0;
  return static_cast<int>(hash(22, from << 20 ^ to) %
                          (2 * static_cast<unsigned>(count(agreed, ranks)) + 1));
}

std::string Case::text(const Catalogue& catalogue, const Comm& on) const {
  const Type& agreed = catalogue.types[type];
  std::string result = std::string("MPI_") + names[static_cast<std::size_t>(collective)] +
                       (large ? "_c" : "") + ", " + on.name + " of " + std::to_string(on.size) +
                       ", " + agreed.name;
  if (mixed) {
    result += " (mixed: " + type_of(catalogue, on.rank, 0).name + " to " +
              type_of(catalogue, on.rank, 1).name + ")";
  }
  if (reduction) result += ", " + catalogue.ops[op].name;
  return result + ", count " + std::to_string(count(agreed, on.size)) + ", root " +
         std::to_string(root(on.size)) + (in_place ? ", in place" : "") +
         (bottom ? ", MPI_BOTTOM" : "") + (mpi_first ? ", MPI first" : "");
}

}  // namespace test
