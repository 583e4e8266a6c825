// Types whose displacements are addresses, with MPI_BOTTOM for a buffer; and what is refused with
// an error on every rank instead of a crash: null for a buffer, a predefined operation on a derived
// type, an operation of the user on a type that MPI does not have.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "collectives/differential_types.hpp"
#include "mpi/check.hpp"
#include "mpi/datatypes.hpp"
#include "mpi/fallback.hpp"
#include "mpi/library.hpp"
#include "ropewalk/process.hpp"

namespace {

using namespace ropewalk;
using namespace ropewalk::test;

using Matrix = std::array<std::int32_t, 4>;

// Two ints each at two addresses.
class Absolute {
 public:
  Absolute(std::int32_t* first, std::int32_t* second) {
    const mpi::Library& library = mpi::library();
    const std::array<int, 2> lengths{2, 2};
    const std::array<mpi::Count, 2> offsets{reinterpret_cast<mpi::Count>(first),
                                            reinterpret_cast<mpi::Count>(second)};
    const mpi::Word element = library.abi.datatype(mpi::DatatypeName::int_);
    std::array<mpi::Word, 2> types{element, element};
    if (library.abi.int_handles) {
      const std::array<std::uint32_t, 2> ints{static_cast<std::uint32_t>(element),
                                              static_cast<std::uint32_t>(element)};
      std::memcpy(types.data(), ints.data(), sizeof ints);
    }
    mpi::check(
        library.call.type_create_struct(2, lengths.data(), offsets.data(), types.data(), &type_),
        "MPI_Type_create_struct");
    mpi::check(library.call.type_commit(&type_), "MPI_Type_commit");
    for (std::int32_t* start : {first, second}) {
      for (int i = 0; i < 2; ++i) {
        entry_.scalars.push_back({reinterpret_cast<std::int64_t>(start + i), ElementType::int32});
      }
    }
    entry_.extent = mpi::type_extent({type_}).bytes;
  }
  ~Absolute() { mpi::library().call.type_free(&type_); }
  Absolute(const Absolute&) = delete;
  Absolute& operator=(const Absolute&) = delete;

  rw_type number() const { return type_; }
  const TypeEntry& entry() const { return entry_; }

 private:
  mpi::Word type_ = 0;
  TypeEntry entry_{};
};

const OpEntry& find(const Catalogue& catalogue, OpEntry::Kind kind) {
  for (const OpEntry& op : catalogue.ops) {
    if (op.kind == kind) return op;
  }
  throw Error(ErrorCode::internal, "no such operation");
}

void expect_success(int code, const char* what) {
  expect(code == RW_SUCCESS, std::string(what) + ": " + rw_last_error());
}

// a and b lie apart, with something between them that stays.
struct Scattered {
  std::array<std::int32_t, 2> a{};
  std::int32_t between = 77;
  std::array<std::int32_t, 2> b{};
  Matrix matrix() const { return {a[0], a[1], b[0], b[1]}; }
};

void addresses(const Catalogue& catalogue, rw_comm* comm, int rank) {
  Scattered data{{rank + 1, 2}, 77, {3, rank + 4}};
  const Absolute type(data.a.data(), data.b.data());
  const OpEntry& product = find(catalogue, OpEntry::Kind::matrix);
  Matrix expected = data.matrix();
  const TypeEntry& plain = catalogue.types[catalogue.matrices[0]];
  use_layout(plain);
  mpi::fallback::allreduce(mpi::in_place(), expected.data(), 1, plain.handle, product.handle,
                           mpi::comm_world());
  use_layout(type.entry());
  expect_success(rw_allreduce(RW_IN_PLACE, nullptr, 1, type.number(), product.number, comm),
                 "allreduce at addresses");
  expect(data.matrix() == expected, "a product at addresses");
  data.a[0] = rank;
  data.b[1] = rank;
  expect_success(rw_bcast(nullptr, 1, type.number(), 0, comm), "broadcast at addresses");
  expect(data.a[0] == 0 && data.b[1] == 0, "a broadcast at addresses");
  expect_equal(data.between, 77, "what lies between");
}

void refusals(const Catalogue& catalogue, rw_comm* comm) {
  std::array<std::int32_t, 64> values{};
  std::array<std::int32_t, 64> results{};
  for (const std::size_t index : catalogue.matrices) {
    const rw_type type = catalogue.types[index].number;
    expect_equal(rw_bcast(nullptr, 1, type, 0, comm), int{RW_ERROR_ARGUMENT}, "null");
    expect_equal(rw_allreduce(values.data() + 16, results.data() + 16, 1, type, RW_SUM, comm),
                 int{RW_ERROR_ARGUMENT}, "RW_SUM on " + catalogue.types[index].name);
  }
  const OpEntry& sum = find(catalogue, OpEntry::Kind::sum);
  expect_equal(rw_allreduce(values.data(), results.data(), 1, RW_FLOAT16, sum.number, comm),
               int{RW_ERROR_UNSUPPORTED}, "a user's operation on float16");
  // And the communicator is as good as before.
  values[0] = 1;
  expect_success(rw_allreduce(values.data(), results.data(), 1, RW_INT32, RW_SUM, comm), "a sum");
  expect_equal(results[0], mpi::size(mpi::comm_world()), "a sum");
}

}  // namespace

int main() {
  try {
    const Process process;
    mpi::return_errors(mpi::comm_world());
    mpi::return_errors(mpi::comm_self());
    const Catalogue catalogue;
    rw_comm* comm = nullptr;
    expect_success(rw_comm_create(mpi::comm_world().value, &comm), "rw_comm_create");
    addresses(catalogue, comm, mpi::rank(mpi::comm_world()));
    refusals(catalogue, comm);
    expect_success(rw_comm_free(comm), "rw_comm_free");
    return exit_code();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}
