// lanes_program THREADS LEVEL: reductions over nodes by several threads a rank, compared with those
// of one thread a rank, bit for bit, on every rank; whole numbers with MPI's own as well. LEVEL is
// the thread level that MPI is started with: multiple or funneled.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "mpi/datatypes.hpp"
#include "mpi/fallback.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/process.hpp"

namespace {

using namespace ropewalk;
using Bytes = std::vector<std::byte>;

// From one element to more pieces than the lanes have under way; the odd ones leave blocks, pieces
// and slices of different lengths.
constexpr std::array<std::size_t, 6> lengths{1, 5, 1000, 40001, 262144, 1500001};

// Draws numbers of any type that can be summed: bytes from 0x30 to 0x3f are finite in all formats.
Bytes random_elements(ElementType type, std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes made(bytes);
  for (std::byte& one : made) {
    const auto drawn = static_cast<std::uint8_t>(random() >> 32);
    one = std::byte{
        static_cast<std::uint8_t>(type == ElementType::boolean ? drawn & 1 : 0x30 | (drawn & 15))};
  }
  return made;
}

struct Test {
  Collectives& one;
  Collectives& several;
  int rank;
  int wrong = 0;

  void check(bool good, const char* what, ElementType type, ReductionOp op, std::size_t count) {
    if (good) return;
    std::fprintf(stderr, "rank %d: %s: %zu of %s, %s\n", rank, what, count, name(type), name(op));
    ++wrong;
  }

  // All ranks have the bits that rank 0 has.
  bool same_everywhere(const Bytes& result) {
    Bytes theirs = result;
    one.broadcast(theirs.data(), theirs.size(), 0);
    return theirs == result;
  }

  void allreduce(ElementType type, ReductionOp op, std::size_t count) {
    const std::size_t bytes = count * size_of(type);
    const Bytes own = random_elements(type, bytes, 1000 * count + static_cast<unsigned>(rank));
    Bytes expected(bytes);
    Bytes result(bytes);
    one.allreduce(own.data(), expected.data(), count, type, op);
    several.allreduce(own.data(), result.data(), count, type, op);
    check(result == expected, "not the bits of one thread", type, op, count);
    check(same_everywhere(result), "not the bits of rank 0", type, op, count);
    Bytes place = own;
    several.allreduce(in_place, place.data(), count, type, op);
    check(place == expected, "in place: not the bits of one thread", type, op, count);
    if (type != ElementType::int32 && type != ElementType::uint64) return;
    mpi::fallback::allreduce(own.data(), place.data(), count, mpi::datatype(type), mpi::op(op),
                             mpi::Comm{Communicator::world().handle()});
    check(result == place, "not what MPI gives", type, op, count);
  }

  void reduce(ElementType type, ReductionOp op, std::size_t count, int root) {
    const std::size_t bytes = count * size_of(type);
    const Bytes own = random_elements(type, bytes, 2000 * count + static_cast<unsigned>(rank));
    Bytes expected(bytes);
    Bytes result(bytes);
    one.reduce(own.data(), expected.data(), count, type, op, root);
    several.reduce(own.data(), result.data(), count, type, op, root);
    check(result == expected, "reduce: not the bits of one thread", type, op, count);
  }
};

// Elements of these have gaps, whose bytes nobody promises.
bool has_gaps(ElementType type) {
  return is_pair(type) || type == ElementType::long_double ||
         type == ElementType::complex_long_double;
}

int run(int threads) {
  Collectives one(Communicator::world(), {.threads = 1});
  Collectives several(Communicator::world(), {.threads = threads});
  if (!several.direct() || several.nodes() != several.size()) {
    std::fprintf(stderr, "not one rank a node: %s\n", several.reason().c_str());
    return 1;
  }
  Test test{one, several, one.rank()};
  for (int type = 0; type < element_type_count; ++type) {
    for (int op = 0; op < reduction_op_count; ++op) {
      const auto own_type = static_cast<ElementType>(type);
      const auto own_op = static_cast<ReductionOp>(op);
      if (own_op >= ReductionOp::replace || !supports(own_op, own_type)) continue;
      if (has_gaps(own_type)) continue;
      test.allreduce(own_type, own_op, 20011);
    }
  }
  for (const std::size_t count : lengths) {
    test.allreduce(ElementType::float32, ReductionOp::sum, count);
    test.allreduce(ElementType::int32, ReductionOp::sum, count);
    test.reduce(ElementType::float64, ReductionOp::sum, count / 2 + 1, one.size() - 1);
  }
  if (several.reduction_threads() != threads) {
    std::fprintf(stderr, "%d threads, expected %d\n", several.reduction_threads(), threads);
    ++test.wrong;
  }
  return test.wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const bool multiple = argc < 3 || std::string(argv[2]) == "multiple";
  try {
    const Process process(multiple ? ThreadLevel::multiple : ThreadLevel::funneled);
    return run(threads);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
