#include "generator/cases.hpp"

#include <algorithm>

namespace generator {
namespace {

constexpr std::array<const char*, collectives> names = {"barrier",
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

bool has_blocks(Collective collective) {
  return collective == Collective::reduce_scatter ||
         collective == Collective::reduce_scatter_block || collective >= Collective::allgather;
}

bool is_vector(Collective collective) {
  return collective == Collective::allgatherv || collective == Collective::gatherv ||
         collective == Collective::scatterv || collective == Collective::alltoallv;
}

bool of_several_kinds(const Type& type) {
  return std::any_of(type.scalars.begin(), type.scalars.end(), [&](const Scalar& scalar) {
    return scalar.bytes != type.scalars[0].bytes || scalar.kind != type.scalars[0].kind;
  });
}

// Draws sizes around those at which algorithms change, and between them.
std::size_t draw_bytes(std::uint64_t random, const Limits& limits) {
  constexpr std::array<std::size_t, 20> around = {0,    0,    4,    8,     16,    40,   40,
                                                  40,   120,  512,  512,   1024,  2048, 4096,
                                                  4096, 8192, 8192, 20000, 65536, 65536};
  const std::uint64_t dice = random % 100;
  const std::size_t most = limits.most_bytes;
  if (dice < limits.large_percent) return most / 4 + (random >> 8) % (most * 3 / 4 + 1);
  // The size is on either side of what is copied in pieces.
  if (dice < limits.large_percent + 8) return (random >> 8) % (most / 10 + 1);
  return std::min(most, around[(random >> 8) % around.size()]);
}

std::uint64_t draw_places(std::uint64_t random) {
  if (random % 3 == 0) return 0;
  return random % 3 == 1 ? ~std::uint64_t{0} : random >> 8;
}

}  // namespace

std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

std::uint64_t Case::hash(std::uint64_t what, std::uint64_t index) const {
  return mix(seed ^ mix(what << 40 ^ index));
}

Case::Case(const Catalogue& catalogue, std::uint64_t number, const Limits& limits)
    : of(limits.of),
      seed(number),
      communicator(hash(2) % limits.communicators),
      collective(static_cast<Collective>(hash(3) % 33 * collectives / 33)),
      type(hash(10) % catalogue.types.size()),
      target_bytes(draw_bytes(hash(11), limits)),
      in_place(hash(7) % 4 == 0),
      own_in_place(of == Interface::c && hash(32) % 2 == 0),
      own_numbers(of == Interface::c && hash(33) % 2 == 0),
      nonblocking(of != Interface::mpi && hash(34) % 4 == 0),
      tested(hash(35) % 2 == 0),
      large(limits.large_counts && hash(4) % 3 == 0),
      // MPICH 5.0.2 cuts the pieces of an allgatherv by each rank's own extent, so that they do
      // not match.
      mixed(of != Interface::cpp && !reduces() && hash(5) % 3 == 0 &&
            collective != Collective::allgatherv),
      bottom(of == Interface::mpi && !reduces() && !is_vector(collective) && hash(6) % 6 == 0),
      nothing(of == Interface::mpi && hash(8) % 2 == 0),
      mpi_first(hash(9) % 2 == 0),
      send_shared(draw_places(hash(36))),
      receive_shared(draw_places(hash(37))),
      skew(hash(38) % 3) {
  draw_type(catalogue);
  if (reduces()) draw_operation(catalogue);
}

void Case::draw_type(const Catalogue& catalogue) {
  const std::vector<std::size_t>& ints = catalogue.families[0];
  if (!ints.empty() && hash(12) % 5 == 0) type = ints[hash(13) % ints.size()];
  // MPICH 5.0.2 finds in its own binomial gather of elements of several kinds that signatures do
  // not match: of long ones, and always where an element has 20 bytes of data.
  if (!reduces() && catalogue.types[type].name == "MPI_LONG_DOUBLE_INT") type = ints[0];
  if (collective == Collective::gather && (mixed || of_several_kinds(catalogue.types[type]))) {
    target_bytes = std::min<std::size_t>(target_bytes, 4096);
  }
}

void Case::draw_operation(const Catalogue& catalogue) {
  std::vector<Operation> legal = Catalogue::legal(catalogue.types[type], of);
  for (std::uint64_t i = 0; legal.empty(); ++i) {
    type = hash(14, i) % catalogue.types.size();
    legal = Catalogue::legal(catalogue.types[type], of);
  }
  op = legal[hash(15) % legal.size()];
  before_buffer = catalogue.types[type].low < 0;
  if (!scatters()) return;
  // MPICH 5.0.2 ends the program for the copy of a derived type onto itself. In front of it the
  // drop-in may pass such a call on; what the C interface does is compared with another call.
  if (of == Interface::mpi && catalogue.types[type].of == Class::derived) in_place = false;
  // MPICH 5.0.2 gives wrong results, and writes beyond its memory, where these do not commute and a
  // type's lower bound is not 0.
  if (op == Operation::user_matrix) type = catalogue.families[0][1];
}

int Case::root(int ranks) const {
  return common_root >= 0 ? common_root : static_cast<int>(hash(1) % static_cast<unsigned>(ranks));
}

const Type& Case::agreed_type(const Catalogue& catalogue) const {
  return catalogue.types[mixed ? catalogue.families[0][0] : type];
}

const Type& Case::type_of(const Catalogue& catalogue, int rank, int side) const {
  if (!mixed) return catalogue.types[type];
  const auto& family = catalogue.families[hash(16) % 4 == 0 ? 1 : 0];
  // The C interface has one type for both sides.
  const auto index = static_cast<unsigned>(2 * rank + (of == Interface::mpi ? side : 0));
  return catalogue.types[family[hash(17, index) % family.size()]];
}

// The same on all ranks, whatever their type: `agreed` is one that all agree on.
int Case::count(const Type& agreed, int ranks) const {
  if (exactly >= 0) return exactly;
  const auto size = static_cast<std::size_t>(ranks);
  const std::size_t share =
      has_blocks(collective) && target_bytes > 4096 ? target_bytes / size : target_bytes;
  if (hash(18) % 10 == 0) return static_cast<int>(hash(19) % size);  // fewer
  const std::size_t bytes = agreed.data_bytes() * static_cast<std::size_t>(agreed.repeat);
  const std::size_t around = bytes == 0 ? 9 : share / bytes;
  const std::size_t off = hash(20) % 3;
  return static_cast<int>(around + off > 1 ? around + off - 1 : around);
}

int Case::count(const Type& agreed, int ranks, std::uint64_t from, std::uint64_t to) const {
  if (exactly >= 0) return exactly;
  if (hash(21, from << 20 ^ to) % 8 == 0) return 0;
  return static_cast<int>(hash(22, from << 20 ^ to) %
                          (2 * static_cast<unsigned>(count(agreed, ranks)) + 1));
}

std::string Case::text(const Catalogue& catalogue, int rank, int ranks) const {
  std::string result = names[static_cast<std::size_t>(collective)];
  result += " of " + catalogue.types[type].name;
  const auto say = [&](bool whether, const std::string& what) {
    if (whether) result += ", " + what;
  };
  say(mixed,
      "mixed: " + type_of(catalogue, rank, 0).name + " to " + type_of(catalogue, rank, 1).name);
  say(reduces(), operation_names[static_cast<std::size_t>(op)]);
  say(true, "count " + std::to_string(count(agreed_type(catalogue), ranks)));
  say(true, "root " + std::to_string(root(ranks)));
  say(in_place, own_in_place ? "in place by RW_IN_PLACE" : "in place");
  say(nonblocking, tested ? "nonblocking, tested" : "nonblocking, waited for");
  say(large, "_c");
  say(bottom, "MPI_BOTTOM");
  say(nothing, "garbage where it does not matter");
  say(mpi_first, "MPI first");
  const auto bits = [](std::uint64_t places) { return std::to_string(places & 0xffff); };
  say(true, "shared " + bits(send_shared) + "/" + bits(receive_shared));
  say(skew > 0, "skew " + std::to_string(skew));
  return result;
}

}  // namespace generator
