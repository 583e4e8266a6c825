// Tests predefined handles to element types and operations and back, without any MPI.
#include "mpi/datatypes.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "mpi/library.hpp"
#include "support/thread_mpi.hpp"

namespace {

using namespace ropewalk;
using mpi::DatatypeName;
using test::run_ranks;

mpi::Datatype named(DatatypeName name) { return {mpi::library().abi.datatype(name)}; }

TEST(Datatypes, EveryElementTypeGoesThereAndBack) {
  run_ranks(1, [](int) {
    for (int i = 0; i < element_type_count; ++i) {
      const auto type = static_cast<ElementType>(i);
      const mpi::Datatype handle = mpi::datatype(type);
      if (type == ElementType::float16 || type == ElementType::bfloat16) {
        EXPECT_EQ(handle, mpi::datatype_null());
        continue;
      }
      EXPECT_EQ(mpi::element_type(handle), type) << name(type);
      EXPECT_EQ(mpi::type_extent(handle).bytes, static_cast<std::int64_t>(size_of(type)));
    }
    EXPECT_EQ(mpi::element_type(named(DatatypeName::aint)), ElementType::int64);
    EXPECT_EQ(mpi::element_type(named(DatatypeName::unsigned_long)), ElementType::uint64);
    EXPECT_EQ(mpi::element_type(named(DatatypeName::packed)), std::nullopt);
    EXPECT_EQ(mpi::element_type(mpi::datatype_null()), std::nullopt);
    EXPECT_EQ(mpi::element_type({0x12345}), std::nullopt);
  });
}

TEST(Datatypes, EveryOperationGoesThereAndBack) {
  run_ranks(1, [](int) {
    for (int i = 0; i < reduction_op_count; ++i) {
      const auto op = static_cast<ReductionOp>(i);
      EXPECT_EQ(mpi::reduction_op(mpi::op(op)), op) << name(op);
    }
    EXPECT_EQ(mpi::reduction_op(mpi::null_op()), std::nullopt);
    EXPECT_TRUE(mpi::commutative(mpi::op(ReductionOp::sum)));
  });
}

TEST(Datatypes, ReduceAndPackLocally) {
  run_ranks(1, [](int) {
    const mpi::Datatype type = mpi::datatype(ElementType::float64);
    std::vector<double> a{1, 2, 3}, b{10, 20, 30}, packed(3), back(3);
    mpi::reduce_local(a.data(), b.data(), 3, type, mpi::op(ReductionOp::sum));
    EXPECT_EQ(b, (std::vector<double>{11, 22, 33}));
    mpi::reduce_local(a.data(), b.data(), 0, type, mpi::op(ReductionOp::sum));
    mpi::pack(b.data(), 3, type, packed.data(), mpi::comm_world());
    mpi::unpack(packed.data(), back.data(), 3, type, mpi::comm_world());
    EXPECT_EQ(back, b);
  });
}

TEST(HandleMap, FindsAllAndNothingElse) {
  mpi::HandleMap<int> map;
  for (int i = 1; i <= 64; ++i) map.insert(static_cast<std::uintptr_t>(i) << 6, i);
  map.insert(64, 999);  // a second name of the same handle
  map.insert(0, 5);
  for (int i = 1; i <= 64; ++i) EXPECT_EQ(map.find(static_cast<std::uintptr_t>(i) << 6), i);
  EXPECT_EQ(map.find(0), std::nullopt);
  EXPECT_EQ(map.find(63), std::nullopt);
}

}  // namespace
