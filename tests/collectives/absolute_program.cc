// This program uses types whose displacements are addresses, with MPI_BOTTOM for a buffer. It also
// tries what must be refused with an error on every rank instead of a crash: null for a buffer, a
// predefined operation on a derived type, an operation of the user on a type that MPI does not
// have.
#include "generator/mpi/handles.hpp"
#include "ropewalk/ropewalk.h"

namespace {

using namespace generator;
using test::expect;

using Matrix = std::array<std::int32_t, 4>;

// The type has two ints at each of two addresses.
struct Absolute {
  Absolute(std::int32_t* first, std::int32_t* second) {
    const std::array<int, 2> lengths{2, 2};
    std::array<MPI_Aint, 2> offsets{};
    PMPI_Get_address(first, offsets.data());
    PMPI_Get_address(second, &offsets[1]);
    PMPI_Type_create_hindexed(2, lengths.data(), offsets.data(), MPI_INT, &handle);
    PMPI_Type_commit(&handle);
  }
  ~Absolute() { PMPI_Type_free(&handle); }
  Absolute(const Absolute&) = delete;
  Absolute& operator=(const Absolute&) = delete;
  MPI_Datatype handle = MPI_DATATYPE_NULL;
};

// The operation multiplies two matrices, each of which is two ints at one address and two at the
// next. It is called with addresses of MPI_BOTTOM's kind or with packed copies: both are base +
// offset.
std::array<std::int64_t, 4> places;
void multiply(void* in, void* inout, int* count, MPI_Datatype*) {
  (void)count;  // one
  Matrix x{};
  Matrix y{};
  for (std::size_t k = 0; k < 4; ++k) {
    std::memcpy(&x[k], static_cast<char*>(in) + places[k], sizeof x[k]);
    std::memcpy(&y[k], static_cast<char*>(inout) + places[k], sizeof y[k]);
  }
  for (std::size_t k = 0; k < 4; ++k) {
    const std::int32_t value = x[k / 2 * 2] * y[k % 2] + x[k / 2 * 2 + 1] * y[k % 2 + 2];
    std::memcpy(static_cast<char*>(inout) + places[k], &value, sizeof value);
  }
}

void expect_success(int code, const char* what) {
  expect(code == RW_SUCCESS, std::string(what) + ": " + rw_last_error());
}
void expect_code(int code, int expected, const std::string& what) {
  expect(code == expected,
         what + ": code " + std::to_string(code) + ", expected " + std::to_string(expected));
}

// a and b lie apart, with something between them that stays.
struct Scattered {
  std::array<std::int32_t, 2> a{};
  std::int32_t between = 77;
  std::array<std::int32_t, 2> b{};
};

void addresses(rw_comm* comm, int rank) {
  MPI_Op product;
  PMPI_Op_create(&multiply, 0, &product);
  Scattered data{{rank + 1, 2}, 77, {3, rank + 4}};
  Matrix expected{data.a[0], data.a[1], data.b[0], data.b[1]};
  const Absolute type(data.a.data(), data.b.data());
  MPI_Datatype plain;
  PMPI_Type_contiguous(4, MPI_INT, &plain);
  PMPI_Type_commit(&plain);
  places = {0, 4, 8, 12};
  PMPI_Allreduce(MPI_IN_PLACE, expected.data(), 1, plain, product, MPI_COMM_WORLD);
  for (std::size_t k = 0; k < 4; ++k) {
    const std::int32_t* at = k < 2 ? &data.a[k] : &data.b[k - 2];
    places[k] = reinterpret_cast<std::int64_t>(at);
  }
  const rw_type number = RW_MPI_TYPE(type.handle);
  expect_success(rw_allreduce(RW_IN_PLACE, nullptr, 1, number, RW_MPI_OP(product), comm),
                 "allreduce at addresses");
  expect(Matrix{data.a[0], data.a[1], data.b[0], data.b[1]} == expected, "a product at addresses");
  data.a[0] = rank;
  data.b[1] = rank;
  expect_success(rw_bcast(nullptr, 1, number, 0, comm), "broadcast at addresses");
  expect(data.a[0] == 0 && data.b[1] == 0, "a broadcast at addresses");
  expect(data.between == 77, "what lies between");
  PMPI_Type_free(&plain);
  PMPI_Op_free(&product);
}

void refusals(const Handles& handles, rw_comm* comm) {
  std::array<std::int32_t, 64> values{};
  std::array<std::int32_t, 64> results{};
  for (const Type& type : handles.catalogue.types) {
    if (type.of != Class::derived || type.family != 0) continue;
    const rw_type number = RW_MPI_TYPE(handles.type(type));
    expect_code(rw_bcast(nullptr, 1, number, 0, comm), RW_ERROR_ARGUMENT, "null");
    expect_code(rw_allreduce(values.data() + 16, results.data() + 16, 1, number, RW_SUM, comm),
                RW_ERROR_ARGUMENT, "RW_SUM on " + type.name);
  }
  const rw_op sum = RW_MPI_OP(handles.op(Operation::user_sum));
  expect_code(rw_allreduce(values.data(), results.data(), 1, RW_FLOAT16, sum, comm),
              RW_ERROR_UNSUPPORTED, "a user's operation on float16");
  // And the communicator is as good as before.
  values[0] = 1;
  expect_success(rw_allreduce(values.data(), results.data(), 1, RW_INT32, RW_SUM, comm), "a sum");
  expect(results[0] == test::size_of(MPI_COMM_WORLD), "a sum");
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  {
    const Handles handles;
    rw_comm* comm = nullptr;
    expect_success(rw_comm_create(RW_MPI_COMM(MPI_COMM_WORLD), &comm), "rw_comm_create");
    addresses(comm, test::rank_of(MPI_COMM_WORLD));
    refusals(handles, comm);
    expect_success(rw_comm_free(comm), "rw_comm_free");
  }
  const bool failed = test::any_failure();
  MPI_Finalize();
  return failed ? 1 : 0;
}
