#include "collectives/differential_case.hpp"

#include <algorithm>
#include <array>

#include "mpi/datatypes.hpp"

namespace ropewalk::test {
namespace {

constexpr ElementType long_pair = ElementType::long_double_int;

std::uint64_t mix(std::uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

constexpr std::array<const char*, collective_count> names = {"barrier",
                                                             "allreduce",
                                                             "reduce",
                                                             "scan",
                                                             "exscan",
                                                             "reduce_scatter",
                                                             "reduce_scatter_block",
                                                             "bcast",
                                                             "allgather",
                                                             "allgatherv",
                                                             "gather",
                                                             "gatherv",
                                                             "scatter",
                                                             "scatterv",
                                                             "alltoall",
                                                             "alltoallv"};

bool reduces(Collective collective) {
  return collective >= Collective::allreduce && collective <= Collective::reduce_scatter_block;
}

// MPICH 5.0.2 cuts the pieces of an allgatherv by each rank's own extent, so that they do not
// match.
bool may_mix(Collective collective) {
  return !reduces(collective) && collective != Collective::allgatherv;
}

bool has_blocks(Collective collective) {
  return collective == Collective::reduce_scatter || collective >= Collective::allgather ||
         collective == Collective::reduce_scatter_block;
}

// Around the sizes at which algorithms change, and between them.
std::size_t draw_bytes(std::uint64_t random) {
  constexpr std::array<std::size_t, 20> around = {0,    0,    4,    8,     16,    40,   40,
                                                  40,   120,  512,  512,   1024,  2048, 4096,
                                                  4096, 8192, 8192, 20000, 65536, 65536};
  const std::uint64_t dice = random % 100;
  if (dice < 3) return (random >> 8) % (std::size_t{3} << 20) + (std::size_t{1} << 20);
  if (dice < 10) return (random >> 8) % 400000;  // on both sides of what is copied in pieces
  return around[(random >> 8) % around.size()];
}

std::uint64_t draw_places(std::uint64_t random) {
  if (random % 3 == 0) return 0;
  return random % 3 == 1 ? ~std::uint64_t{0} : random >> 8;
}

}  // namespace

std::uint64_t Differential::hash(std::uint64_t what, std::uint64_t index) const {
  return mix(seed ^ mix(what << 40 ^ index));
}

Differential::Differential(const Catalogue& catalogue, std::uint64_t number,
                           std::size_t communicators)
    : seed(number),
      communicator(hash(2, 0) % communicators),
      collective(static_cast<Collective>(hash(3, 0) % 33 * collective_count / 33)),
      is_reduction(reduces(collective)),
      mixed(may_mix(collective) && hash(4, 0) % 8 == 0),
      type(hash(5, 0) % catalogue.types.size()),
      op(0),
      target_bytes(draw_bytes(hash(6, 0))),
      send_in_arena(draw_places(hash(7, 0))),
      receive_in_arena(draw_places(hash(8, 0))),
      skew(hash(9, 0) % 3),
      in_place(hash(10, 0) % 4 == 0),
      mpi_in_place(hash(11, 0) % 2 == 0),
      nonblocking(hash(12, 0) % 4 == 0) {
  if (mixed || hash(13, 0) % 5 == 0) {
    type = catalogue.matrices[hash(14, 0) % catalogue.matrices.size()];
  }
  // MPICH 5.0.2 finds in its own binomial gather of these that signatures do not match.
  if (!is_reduction && mpi::element_type(catalogue.types[type].handle) == long_pair) {
    type = catalogue.matrices.front();
  }
  if (!is_reduction) return;
  std::vector<std::size_t> legal = catalogue.legal(catalogue.types[type]);
  for (std::uint64_t i = 0; legal.empty(); ++i) {
    type = hash(15, i) % catalogue.types.size();
    legal = catalogue.legal(catalogue.types[type]);
  }
  op = legal[hash(16, 0) % legal.size()];
  // MPICH 5.0.2 gives wrong results, and writes beyond its memory, where these do not commute and a
  // type's lower bound is not 0.
  if (catalogue.ops[op].kind == OpEntry::Kind::matrix &&
      (collective == Collective::reduce_scatter ||
       collective == Collective::reduce_scatter_block)) {
    type = catalogue.matrices.front();
  }
}

std::size_t Differential::count(const TypeEntry& entry, int ranks) const {
  const std::size_t share = has_blocks(collective) && target_bytes > 4096
                                ? target_bytes / static_cast<std::size_t>(ranks)
                                : target_bytes;
  if (hash(17, 0) % 10 == 0) return hash(18, 0) % static_cast<std::size_t>(ranks);  // fewer
  const std::size_t around = share / std::max<std::size_t>(1, entry.data_bytes());
  const std::size_t off = hash(19, 0) % 3;
  return around + off > 1 ? around + off - 1 : around;
}

std::size_t Differential::count(const TypeEntry& entry, int ranks, std::uint64_t from,
                                std::uint64_t to) const {
  if (hash(20, from << 20 ^ to) % 8 == 0) return 0;
  return hash(21, from << 20 ^ to) % (2 * count(entry, ranks) + 1);
}

std::string Differential::text(const Catalogue& catalogue, const Pair& on) const {
  const TypeEntry& entry = catalogue.types[type];
  std::string result = std::string(nonblocking ? "nonblocking " : "") +
                       names[static_cast<std::size_t>(collective)] + ", " + on.name + " of " +
                       std::to_string(on.size) + ", " + entry.name + (mixed ? " (mixed)" : "");
  if (is_reduction) result += ", " + catalogue.ops[op].name;
  result += ", count " + std::to_string(count(entry, on.size)) + ", root " +
            std::to_string(root(on.size)) + (in_place ? ", in place" : "");
  result += ", arenas " + std::to_string(send_in_arena & 0xffff) + "/" +
            std::to_string(receive_in_arena & 0xffff) + ", skew " + std::to_string(skew);
  return result;
}

}  // namespace ropewalk::test
