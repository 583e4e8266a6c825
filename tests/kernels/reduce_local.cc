// The kernels against MPI_Reduce_local of the MPI at hand: every type and operation it knows, bit
// for bit.
#include <cmath>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "kernels/buffers.hpp"
#include "kernels/kernels.hpp"
#include "kernels/reference.hpp"
#include "mpi/check.hpp"
#include "mpi/datatypes.hpp"
#include "mpi/mpi.hpp"

namespace {

using namespace ropewalk;
using kernels::Stores;
using testing::Case;

constexpr std::size_t count = 517;
constexpr int operands = 5;

// Open MPI 4.1 and 5.0 saturate sums of 8 and 16 bits where they use AVX; MPI says nothing of
// overflow, so there is none here: five times 0x0f0f.
void keep_sums_small(const Case& c, std::vector<std::byte>& operand) {
  if (c.op != ReductionOp::sum || !is_integer(c.type) || size_of(c.type) > 2) return;
  for (std::byte& b : operand) b &= std::byte{0x0f};
}

std::vector<std::vector<std::byte>> make_operands(const Case& c) {
  std::vector<std::vector<std::byte>> all;
  for (int k = 0; k < operands; ++k) {
    all.emplace_back(c.count * size_of(c.type));
    testing::fill(c.type, testing::Values::ordinary, static_cast<std::uint64_t>(k), all[k].data(),
                  c.count);
    keep_sums_small(c, all.back());
  }
  return all;
}

// Left to right as MPI has it: inout = in op inout, so what is accumulated goes in first.
std::vector<std::byte> by_mpi(const Case& c, const std::vector<std::vector<std::byte>>& all) {
  std::vector<std::byte> accumulated = all[0];
  for (int k = 1; k < operands; ++k) {
    std::vector<std::byte> next = all[static_cast<std::size_t>(k)];
    mpi::reduce_local(accumulated.data(), next.data(), c.count, mpi::datatype(c.type),
                      mpi::op(c.op));
    accumulated = next;
  }
  return accumulated;
}

std::vector<std::byte> by_kernel(const Case& c, const std::vector<std::vector<std::byte>>& all,
                                 InstructionSet set) {
  std::vector<std::byte> result = all.back();  // the gaps are those of the last operand
  std::vector<const void*> inputs;
  for (const auto& operand : all) inputs.push_back(operand.data());
  void* output = result.data();
  kernels::find(c.type, c.op, set)(&output, 1, inputs.data(), operands, c.count, Stores::temporal);
  return result;
}

// MPI leaves the order of the terms of a complex product open, and some MPIs are compiled with
// fused multiply-add: there, the last bits may differ.
template <class T>
bool close(const std::vector<std::byte>& a, const std::vector<std::byte>& b, T tolerance) {
  for (std::size_t i = 0; i < a.size(); i += 2 * sizeof(T)) {
    T x[2], y[2];
    std::memcpy(x, a.data() + i, sizeof x);
    std::memcpy(y, b.data() + i, sizeof y);
    const T scale = std::hypot(x[0], x[1]);
    if (!(std::hypot(x[0] - y[0], x[1] - y[1]) <= tolerance * scale)) return false;
  }
  return true;
}
std::string compare(const Case& c, const std::vector<std::byte>& found,
                    const std::vector<std::byte>& expected) {
  const bool product = c.op == ReductionOp::prod;
  if (product && c.type == ElementType::complex_float32)
    return close(found, expected, 0x1p-20f) ? "" : testing::describe(c);
  if (product && c.type == ElementType::complex_float64)
    return close(found, expected, 0x1p-49) ? "" : testing::describe(c);
  if (product && c.type == ElementType::complex_long_double)
    return close(found, expected, 0x1p-60L) ? "" : testing::describe(c);
  return testing::difference(c, found.data(), expected.data());
}

void check(ElementType type, ReductionOp op) {
  const Case c{type, op, count};
  const auto all = make_operands(c);
  const auto expected = by_mpi(c, all);
  for (const InstructionSet set : testing::available_sets()) {
    const std::string difference = compare(c, by_kernel(c, all, set), expected);
    test::expect(difference.empty(), difference + ", " + name(set));
  }
}

// Halves have no datatype (and MPICH aborts where a sum of its own bfloat16 is asked for);
// MPI allows replace and no_op in accumulates only.
bool tried(ElementType type, ReductionOp op) {
  if (op == ReductionOp::replace || op == ReductionOp::no_op) return false;
  return supports(op, type) && mpi::datatype(type) != mpi::datatype_null();
}

int checked = 0;
void check_everything() {
  for (int t = 0; t < element_type_count; ++t)
    for (int o = 0; o < reduction_op_count; ++o) {
      const auto type = static_cast<ElementType>(t);
      const auto op = static_cast<ReductionOp>(o);
      if (!tried(type, op)) continue;
      check(type, op);
      ++checked;
    }
}

}  // namespace

int main() {
  try {
    mpi::init(mpi::ThreadLevel::multiple);
    mpi::return_errors(mpi::comm_world());
    mpi::return_errors(mpi::comm_self());
    check_everything();
    // 8 integers x 10, 3 real x 4, 3 complex x 2, bool x 3, byte x 3, 6 pairs x 2
    test::expect_equal(checked, 116, "pairs of type and operation");
    mpi::finalize();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
  return test::exit_code();
}
