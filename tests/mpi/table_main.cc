// Tests every wrapper of src/mpi on a real MPI, with any number of ranks.
#include <array>
#include <complex>
#include <cstring>
#include <vector>

#include "mpi/attributes.hpp"
#include "mpi/check.hpp"
#include "mpi/datatypes.hpp"
#include "mpi/fallback_cases.hpp"
#include "mpi/fallback_counts.hpp"
#include "mpi/large_count.hpp"
#include "mpi/library.hpp"
#include "ropewalk/communicator.hpp"
#include "ropewalk/error.hpp"

namespace {

using namespace ropewalk;
using test::expect;
using test::expect_equal;

std::vector<char> pattern(std::size_t bytes, int seed) {
  std::vector<char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i * 7 + i / 256 + seed);
  return data;
}

struct Ring {
  explicit Ring(mpi::Comm communicator) : comm(communicator) {}
  mpi::Comm comm;
  int rank = mpi::rank(comm);
  int size = mpi::size(comm);
  int next = (rank + 1) % size;
  int previous = (rank + size - 1) % size;
};

// The sizes are below and above the eager limits of every MPI.
const std::size_t sizes[] = {0, 1, 100, 70000, 3000001};

void environment() {
  expect(mpi::initialized() && !mpi::finalized(), "MPI runs");
  expect(mpi::thread_level() == mpi::ThreadLevel::multiple, "MPI_THREAD_MULTIPLE");
  expect(mpi::init(mpi::ThreadLevel::single) == mpi::ThreadLevel::multiple, "init again");
  expect(!mpi::library_version().empty(), "a version");
  expect(mpi::wtime() >= 0, "a clock");
  expect_equal(Communicator::world().rank(), mpi::rank(mpi::comm_world()), "rank of the view");
  expect_equal(mpi::size(mpi::comm_self()), 1, "size of MPI_COMM_SELF");
  mpi::adopt_thread_identity(mpi::thread_identity());
}

void blocking(mpi::Comm comm) {
  const Ring ring(comm);
  for (const std::size_t bytes : sizes) {
    const std::vector<char> out = pattern(bytes, ring.rank);
    std::vector<char> in(bytes + 5);
    mpi::Request request = mpi::isend(out.data(), bytes, ring.next, 4, comm);
    const mpi::Status status =
        mpi::receive(in.data(), bytes + 5, mpi::any_source(), mpi::any_tag(), comm);
    mpi::wait(request);
    expect(request == mpi::request_null(), "a waited request is null");
    expect_equal(status.bytes, static_cast<std::int64_t>(bytes), "bytes received");
    expect_equal(status.source, ring.previous, "source");
    expect_equal(status.tag, 4, "tag");
    in.resize(bytes);
    expect(in == pattern(bytes, ring.previous), "data of " + std::to_string(bytes) + " bytes");
  }
  mpi::send(nullptr, 0, mpi::proc_null(), 0, comm);
  expect_equal(mpi::receive(nullptr, 0, mpi::proc_null(), 0, comm).source, mpi::proc_null(),
               "source of MPI_PROC_NULL");
}

void even_and_odd(mpi::Comm comm) {
  const Ring ring(comm);
  if (ring.size < 2 || ring.rank > 1) return;
  std::vector<char> data = pattern(500000, ring.rank);
  if (ring.rank == 0) mpi::send(data.data(), data.size(), 1, 0, comm);
  if (ring.rank == 1) {
    while (!mpi::iprobe(0, 0, comm)) {
    }
    mpi::receive(data.data(), data.size(), 0, 0, comm);
    expect(data == pattern(500000, 0), "a large blocking send");
  }
}

void many_requests(mpi::Comm comm, bool polling) {
  constexpr std::size_t n = 77;  // more than two batches of the wrappers
  const Ring ring(comm);
  std::vector<std::vector<char>> in(n), out(n);
  std::vector<mpi::Request> requests;
  for (std::size_t i = 0; i < n; ++i) {
    in[i].resize(i * i * 9);
    out[i] = pattern(i * i * 9, ring.rank + static_cast<int>(i));
    const int tag = static_cast<int>(i);
    requests.push_back(mpi::ireceive(in[i].data(), in[i].size(), ring.previous, tag, comm));
    requests.push_back(mpi::isend(out[i].data(), out[i].size(), ring.next, tag, comm));
  }
  if (polling) {
    while (!mpi::test_all(requests)) {
    }
  } else {
    mpi::wait_all(requests);
  }
  for (std::size_t i = 0; i < n; ++i) {
    expect(in[i] == pattern(in[i].size(), ring.previous + static_cast<int>(i)), "one of many");
  }
  for (const mpi::Request& request : requests) {
    expect(request == mpi::request_null(), "completed requests are null");
  }
}

void one_at_a_time(mpi::Comm comm) {
  const Ring ring(comm);
  int in = -1;
  mpi::Request receive = mpi::ireceive(&in, sizeof in, ring.previous, 1, comm);
  mpi::Request send = mpi::isend(&ring.rank, sizeof(int), ring.next, 1, comm);
  while (!mpi::test(receive)) {
  }
  while (!mpi::test(send)) {
  }
  expect_equal(in, ring.previous, "one int");
  mpi::Request never = mpi::ireceive(&in, sizeof in, ring.previous, 2, comm);
  mpi::cancel(never);
  expect(never == mpi::request_null(), "a cancelled receive is null");
}

void communicators() {
  const int rank = mpi::rank(mpi::comm_world());
  const int size = mpi::size(mpi::comm_world());
  mpi::Comm odd = mpi::split(mpi::comm_world(), rank % 2, -rank);
  expect_equal(mpi::size(odd), (size + 1 - rank % 2) / 2, "size of half");
  expect_equal(mpi::rank(odd), mpi::size(odd) - 1 - rank / 2, "rank in half, reversed");
  mpi::free(odd);
  expect(odd == mpi::comm_null(), "a freed communicator is null");
  mpi::Comm none = mpi::split(mpi::comm_world(), rank == 0 ? 3 : mpi::undefined(), 0);
  expect((none == mpi::comm_null()) == (rank != 0), "no colour, no communicator");
  if (rank == 0) mpi::free(none);
  mpi::Comm node = mpi::split_shared(mpi::comm_world());
  expect_equal(mpi::size(node), size, "this test runs on one node");
  mpi::free(node);
}

void collectives(mpi::Comm comm) {
  const Ring ring(comm);
  mpi::barrier(comm);
  for (int root = 0; root < ring.size; ++root) {
    std::vector<char> data = pattern(1000, ring.rank);
    mpi::broadcast(data.data(), data.size(), root, comm);
    expect(data == pattern(1000, root), "broadcast");
  }
  const std::int64_t mine = 1000 + ring.rank;
  std::vector<std::int64_t> all(static_cast<std::size_t>(ring.size));
  mpi::all_gather(&mine, all.data(), sizeof mine, comm);
  for (int i = 0; i < ring.size; ++i)
    expect_equal(all[static_cast<std::size_t>(i)], 1000 + i, "gather");
  std::array<std::int64_t, 2> longs{ring.rank, -ring.rank};
  mpi::all_reduce(longs, mpi::Combine::max, comm);
  expect_equal(longs[0], ring.size - 1, "max");
  expect_equal(longs[1], 0, "max of negatives");
  std::array<double, 1> doubles{ring.rank + 0.5};
  mpi::all_reduce(doubles, mpi::Combine::sum, comm);
  expect_equal(doubles[0], ring.size * (ring.size - 1) / 2 + 0.5 * ring.size, "sum");
  doubles[0] = ring.rank;
  mpi::all_reduce(doubles, mpi::Combine::min, comm);
  expect_equal(doubles[0], 0.0, "min");
}

// An error on a communicator of ours comes back, and MPI goes on.
template <class Call>
void expect_error(const char* function, const Call& call) {
  try {
    call();
    expect(false, std::string(function) + ": no error");
  } catch (const Error& error) {
    expect(error.code() == ErrorCode::mpi, "code of an MPI error");
    expect(std::string(error.what()).rfind(std::string(function) + ": ", 0) == 0, error.what());
  }
}

void errors(mpi::Comm comm) {
  const Ring ring(comm);
  char small = 0;
  expect_error("MPI_Send", [&] { mpi::send(&small, 1, ring.size + 7, 0, comm); });
  expect_error("MPI_Recv", [&] {
    mpi::Request request = mpi::isend("abcdefg", 8, ring.rank, 6, comm);
    try {
      mpi::receive(&small, 1, ring.rank, 6, comm);  // truncated
    } catch (...) {
      mpi::wait(request);
      throw;
    }
  });
  mpi::barrier(comm);
}

int deletions = 0;
void count(void* value) noexcept { deletions += *static_cast<int*>(value); }

void attributes() {
  static int one = 1, ten = 10, hundred = 100;
  mpi::Keyval keyval = mpi::create_keyval(&count);
  mpi::Comm comm = mpi::dup(mpi::comm_world());
  expect(mpi::attribute(comm, keyval) == nullptr, "no attribute yet");
  mpi::set_attribute(comm, keyval, &one);
  expect(mpi::attribute(comm, keyval) == &one, "the attribute");
  mpi::Comm copy = mpi::dup(comm);
  expect(mpi::attribute(copy, keyval) == nullptr, "duplicates do not inherit");
  mpi::set_attribute(copy, keyval, &ten);
  mpi::delete_attribute(copy, keyval);
  expect_equal(deletions, 10, "deleted by hand");
  mpi::set_attribute(comm, keyval, &hundred);
  expect_equal(deletions, 11, "replaced");
  mpi::free(copy);
  mpi::free(comm);
  expect_equal(deletions, 111, "freed with its communicator");
  mpi::free_keyval(keyval);
  expect(mpi::tag_upper_bound(mpi::comm_world()) >= 32767, "MPI_TAG_UB");
}

// Checks the sizes of C's datatypes as this compiler has them; the ABI proof knows the handles
// only.
void datatypes() {
  using mpi::DatatypeName;
  const std::pair<DatatypeName, std::size_t> expected[] = {
      {DatatypeName::byte_, 1},
      {DatatypeName::char_, 1},
      {DatatypeName::short_, sizeof(short)},
      {DatatypeName::int_, sizeof(int)},
      {DatatypeName::unsigned_, sizeof(unsigned)},
      {DatatypeName::long_, sizeof(long)},
      {DatatypeName::long_long, sizeof(long long)},
      {DatatypeName::float_, sizeof(float)},
      {DatatypeName::double_, sizeof(double)},
      {DatatypeName::long_double, sizeof(long double)},
      {DatatypeName::wchar, sizeof(wchar_t)},
      {DatatypeName::int8, 1},
      {DatatypeName::uint16, 2},
      {DatatypeName::int32, 4},
      {DatatypeName::uint64, 8},
      {DatatypeName::aint, 8},
      {DatatypeName::count, 8},
      {DatatypeName::offset, 8},
      {DatatypeName::c_bool, 1},
      {DatatypeName::c_float_complex, sizeof(std::complex<float>)},
      {DatatypeName::c_double_complex, sizeof(std::complex<double>)},
      {DatatypeName::float_int, 8},
      {DatatypeName::double_int, 12},
      {DatatypeName::two_int, 8},
      {DatatypeName::short_int, 6},
  };
  const mpi::Library& library = mpi::library();
  for (const auto& [type, bytes] : expected) {
    mpi::Count found = -1;
    library.call.type_size_x(library.abi.datatype(type), &found);
    expect_equal(found, static_cast<mpi::Count>(bytes), name(type));
  }
}

// On a real MPI, pairs have gaps and Fortran's types have sizes of their own.
void element_types() {
  for (int i = 0; i < element_type_count; ++i) {
    const auto type = static_cast<ElementType>(i);
    if (type == ElementType::float16 || type == ElementType::bfloat16) continue;
    const mpi::Datatype handle = mpi::datatype(type);
    expect(mpi::element_type(handle) == type, std::string("there and back: ") + name(type));
    expect_equal(mpi::type_extent(handle).bytes, static_cast<std::int64_t>(size_of(type)),
                 std::string("extent of ") + name(type));
  }
  const mpi::Abi& abi = mpi::library().abi;
  for (const auto name : {mpi::DatatypeName::integer, mpi::DatatypeName::double_precision}) {
    const mpi::Datatype fortran{abi.datatype(name)};
    const auto type = mpi::element_type(fortran);
    expect(!type || size_of(*type) == static_cast<std::size_t>(mpi::type_size(fortran)),
           mpi::name(name));
  }
  expect(mpi::reduction_op(mpi::op(ReductionOp::bxor)) == ReductionOp::bxor, "MPI_BXOR");
  expect(!mpi::reduction_op(mpi::null_op()), "MPI_OP_NULL is no operation");
  expect(mpi::commutative(mpi::op(ReductionOp::sum)), "MPI_SUM commutes");
}

void local_work(mpi::Comm comm) {
  const mpi::Datatype type = mpi::datatype(ElementType::short_int);  // 6 bytes of data in 8
  std::array<ShortInt, 3> a{{{1, 1}, {5, 2}, {3, 3}}};
  std::array<ShortInt, 3> b{{{2, 7}, {4, 8}, {3, 9}}};
  mpi::reduce_local(a.data(), b.data(), 3, type, mpi::op(ReductionOp::maxloc));
  expect(b[0].index == 7 && b[1].index == 2 && b[2].index == 3, "MPI_MAXLOC");
  std::array<char, 18> packed{};
  mpi::pack(b.data(), 3, type, packed.data(), comm);
  std::array<ShortInt, 3> back{};
  mpi::unpack(packed.data(), back.data(), 3, type, comm);
  expect(back[1].value == 5 && back[2].index == 3, "packed and unpacked");
}

// Tests the operations themselves, so that none is taken for another. (MPI_REPLACE and MPI_NO_OP
// are for one-sided communication only.)
void operations() {
  using mpi::OpName;
  const std::pair<OpName, int> expected[] = {
      {OpName::max, 12}, {OpName::min, 10}, {OpName::sum, 22}, {OpName::prod, 120},
      {OpName::land, 1}, {OpName::band, 8}, {OpName::lor, 1},  {OpName::bor, 14},
      {OpName::lxor, 0}, {OpName::bxor, 6}};
  const mpi::Library& library = mpi::library();
  for (const auto& [op, result] : expected) {
    const int from = 12;
    int into = 10;
    library.call.reduce_local(&from, &into, 1, library.abi.datatype(mpi::DatatypeName::int_),
                              library.abi.op(op));
    expect_equal(into, result, name(op));
  }
}

// What stands in for a count above INT_MAX, with blocks small enough to try.
void large_type(mpi::Comm comm) {
  const Ring ring(comm);
  const mpi::Functions& call = mpi::library().call;
  for (const std::size_t bytes : {std::size_t{5}, std::size_t{1000}, std::size_t{100003}}) {
    const mpi::LargeType type(bytes, mpi::byte_type(), 1000);
    mpi::Count size = 0;
    call.type_size_x(type.word(), &size);
    expect_equal(size, static_cast<mpi::Count>(bytes), "size of a large type");
    const std::vector<char> out = pattern(bytes, ring.rank);
    std::vector<char> in(bytes);
    mpi::Request request = mpi::ireceive(in.data(), bytes, ring.previous, 0, comm);
    mpi::check(call.send(out.data(), 1, type.word(), ring.next, 0, comm.value), "MPI_Send");
    mpi::wait(request);
    expect(in == pattern(bytes, ring.previous), "data of a large type");
  }
  const std::size_t huge = (std::size_t{5} << 30) + 3;
  const mpi::LargeType type(huge, mpi::byte_type());
  mpi::Count size = 0;
  call.type_size_x(type.word(), &size);
  expect_equal(size, static_cast<mpi::Count>(huge), "size of a type above 4 GiB");
}

void fallbacks(mpi::Comm comm) {
  for (const std::size_t limit : {std::size_t{INT_MAX}, std::size_t{100}}) {
    mpi::fallback::int_limit = limit;
    for (const std::size_t count : {0, 101, 1001}) {
      test::try_fallbacks(comm, count, &expect);
    }
  }
  mpi::fallback::int_limit = INT_MAX;
}

}  // namespace

int main() {
  mpi::init(mpi::ThreadLevel::multiple);
  mpi::Comm comm = mpi::dup(mpi::comm_world());
  environment();
  blocking(comm);
  even_and_odd(comm);
  many_requests(comm, false);
  many_requests(comm, true);
  one_at_a_time(comm);
  communicators();
  collectives(comm);
  errors(comm);
  attributes();
  datatypes();
  operations();
  element_types();
  local_work(comm);
  large_type(comm);
  fallbacks(comm);
  mpi::free(comm);
  const int code = test::exit_code();
  mpi::finalize();
  return mpi::finalized() ? code : 1;
}
