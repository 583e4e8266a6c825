// Tries every predefined datatype with every predefined operation: what MPI_Reduce_local of the MPI
// at hand accepts, MPI_Allreduce gives with the same bits; what it refuses, MPI_Allreduce refuses
// in the MPI's own words. Types by MPI_Type_create_f90_* and operations of the user are tried as
// well.
//
// Prints "operations: A accepted, R refused" for check_operations.py, which finds the same numbers
// in ROPEWALK_STATS: nothing that the MPI accepts is passed to it. Runs with two ranks.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "the_mpi.hpp"

namespace {

struct Type {
  const char* name;
  MPI_Datatype handle;
  char kind;
};

const std::vector<Type> predefined = {
#define TYPE(handle, kind) {#handle, handle, kind},
#include "predefined.inc"
#undef TYPE
};

struct Op {
  const char* name;
  MPI_Op handle;
};
const std::vector<Op> operations = {
    {"max", MPI_MAX},         {"min", MPI_MIN},    {"sum", MPI_SUM},       {"prod", MPI_PROD},
    {"land", MPI_LAND},       {"band", MPI_BAND},  {"lor", MPI_LOR},       {"bor", MPI_BOR},
    {"lxor", MPI_LXOR},       {"bxor", MPI_BXOR},  {"maxloc", MPI_MAXLOC}, {"minloc", MPI_MINLOC},
    {"replace", MPI_REPLACE}, {"no_op", MPI_NO_OP}};

int failures = 0;
int accepted = 0;
int refused = 0;
int rank = 0;
MPI_Comm comm;

void fail(const Type& type, const char* op, const std::string& what) {
  if (++failures <= 20) {
    std::fprintf(stderr, "rank %d: %s, %s: %s\n", rank, type.name, op, what.c_str());
  }
}

template <class T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// Writes a floating-point number of so many bytes, which is exact in sums and products of two.
void put_floating(std::byte* to, std::size_t bytes, int value) {
  if (bytes == 4) put(to, static_cast<float>(value) / 4);
  if (bytes == 8) put(to, static_cast<double>(value) / 4);
  if (bytes == 16) put(to, static_cast<long double>(value) / 4);
}

void put_integer(std::byte* to, std::size_t bytes, int value) {
  std::memset(to, value < 0 ? 0xff : 0, bytes);
  std::memcpy(to, &value, std::min(bytes, sizeof value));
}

// Fills in small numbers of both signs: no product of two overflows a byte, where MPIs differ from
// themselves by instruction set.
void fill(const Type& type, std::byte* to, std::size_t bytes, std::mt19937& random) {
  const int number = static_cast<int>(random() % 11) - 5;
  const int other = static_cast<int>(random() % 11) - 5;
  switch (type.kind) {
    case 'i':
      return put_integer(to, bytes, number);
    case 'u':
      return put_integer(to, bytes, number + 5);
    case 'b':
      // One byte is a bool; Fortran's truth may be any number to an MPI.
      return put_integer(to, bytes, bytes == 1 ? number & 1 : number < 0 ? 0 : number - 1);
    case 'f':
      return put_floating(to, bytes, number);
    case 'c':
      put_floating(to, bytes / 2, number);
      return put_floating(to + bytes / 2, bytes / 2, other);
    default:
      for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(random());
  }
}

// A pair: small values, so that some are equal.
void fill_pair(const Type& type, std::byte* to, std::size_t extent, std::mt19937& random) {
  const int value = static_cast<int>(random() % 5) - 2;
  const int index = static_cast<int>(random() % 9);
  const std::string name = type.name;
  std::memset(to, 0, extent);
  if (name == "MPI_2REAL" || name == "MPI_2DOUBLE_PRECISION") {
    put_floating(to, extent / 2, value);
    put_floating(to + extent / 2, extent / 2, index);
  } else if (name == "MPI_FLOAT_INT" || name == "MPI_DOUBLE_INT" || name == "MPI_LONG_DOUBLE_INT") {
    put_floating(to, extent / 2, value);
    put(to + extent / 2, index);
  } else {
    put_integer(to, extent / 2, value);
    put(to + extent / 2, index);
  }
}

std::vector<std::byte> make(const Type& type, std::size_t count, unsigned seed) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(type.handle, &lower, &extent);
  const auto bytes = static_cast<std::size_t>(extent);
  std::mt19937 random(seed);
  std::vector<std::byte> made(count * bytes);
  for (std::size_t i = 0; i < count; ++i) {
    if (type.kind == 'p') fill_pair(type, made.data() + i * bytes, bytes, random);
    if (type.kind != 'p') fill(type, made.data() + i * bytes, bytes, random);
  }
  return made;
}

// Returns the bytes that hold data: neither gaps of pairs nor the six bytes beside an x87 number.
std::vector<std::byte> data_of(const Type& type, const std::vector<std::byte>& elements,
                               std::size_t count) {
  int size = 0;
  PMPI_Type_size(type.handle, &size);
  std::vector<std::byte> packed(count * static_cast<std::size_t>(size));
  int position = 0;
  PMPI_Pack(elements.data(), static_cast<int>(count), type.handle, packed.data(),
            static_cast<int>(packed.size()), &position, MPI_COMM_SELF);
  const std::string name = type.name;
  const bool x87 = name.find("LONG_DOUBLE") != std::string::npos || name == "MPI_REAL16" ||
                   name == "MPI_COMPLEX32";
  if (!x87) return packed;
  const std::size_t step = name == "MPI_LONG_DOUBLE_INT" ? 20 : 16;
  for (std::size_t i = 0; i < packed.size(); ++i) {
    if (i % step >= 10 && i % step < 16) packed[i] = std::byte{0};
  }
  return packed;
}

int class_of(int error) {
  int result = MPI_SUCCESS;
  if (error != MPI_SUCCESS) PMPI_Error_class(error, &result);
  return result;
}

void check_refused(const Type& type, const Op& op) {
  ++refused;
  std::array<std::byte, 64> send{};
  std::array<std::byte, 64> receive{};
  const int mine = MPI_Allreduce(send.data(), receive.data(), 1, type.handle, op.handle, comm);
  const int plain = PMPI_Allreduce(send.data(), receive.data(), 1, type.handle, op.handle, comm);
  if (plain == MPI_SUCCESS)
    fail(type, op.name, "MPI_Allreduce takes it, MPI_Reduce_local does not");
  if (class_of(mine) != class_of(plain)) fail(type, op.name, "another error than the MPI's");
}

// Two counts: through the slots, and above.
void check_accepted(const Type& type, const char* name, MPI_Op op) {
  for (const std::size_t count : {std::size_t{37}, std::size_t{3001}}) {
    ++accepted;
    const auto number = static_cast<int>(count);
    const auto first = make(type, count, 1);
    const auto second = make(type, count, 2);
    auto expected = second;
    PMPI_Reduce_local(first.data(), expected.data(), number, type.handle, op);
    auto found = make(type, count, 3);
    const auto& own = rank == 0 ? first : second;
    if (MPI_Allreduce(own.data(), found.data(), number, type.handle, op, comm) != MPI_SUCCESS) {
      fail(type, name, "refused, where MPI_Reduce_local accepts it");
    } else if (data_of(type, found, count) != data_of(type, expected, count)) {
      fail(type, name, "not the bits of MPI_Reduce_local");
    }
  }
}

void check(const Type& type) {
  int size = 0;
  if (type.handle == MPI_DATATYPE_NULL) return;
  if (PMPI_Type_size(type.handle, &size) != MPI_SUCCESS || size <= 0) return;
  for (const Op& op : operations) {
    alignas(64) std::array<std::byte, 64> in{};
    alignas(64) std::array<std::byte, 64> inout{};
    if (PMPI_Reduce_local(in.data(), inout.data(), 1, type.handle, op.handle) == MPI_SUCCESS) {
      check_accepted(type, op.name, op.handle);
    } else {
      check_refused(type, op);
    }
  }
}

// This operation is the exclusive or of the bytes that hold data in every type there is: the first
// two.
void combine(void* in, void* inout, int* count, MPI_Datatype* type) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(*type, &lower, &extent);
  for (int i = 0; i < *count; ++i) {
    static_cast<char*>(inout)[i * extent] ^= static_cast<char*>(in)[i * extent];
  }
}

void check_own_operation() {
  MPI_Op own;
  PMPI_Op_create(&combine, 1, &own);
  for (const Type& type : predefined) {
    int size = 0;
    if (type.handle == MPI_DATATYPE_NULL) continue;
    if (PMPI_Type_size(type.handle, &size) == MPI_SUCCESS && size > 0) {
      check_accepted(type, "an operation of the user", own);
    }
  }
  PMPI_Op_free(&own);
}

// Tries types by precision and range, which are nobody's to free.
void check_by_kind() {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (PMPI_Type_create_f90_real(6, 30, &type) == MPI_SUCCESS) check({"f90_real(6, 30)", type, 'f'});
  if (PMPI_Type_create_f90_real(15, 300, &type) == MPI_SUCCESS) {
    check({"f90_real(15, 300)", type, 'f'});
  }
  if (PMPI_Type_create_f90_complex(15, 300, &type) == MPI_SUCCESS) {
    check({"f90_complex(15, 300)", type, 'c'});
  }
  // Open MPI 5.0.11 adds the smallest as bytes without a sign, and some of them up to 255 at most.
  for (const int range : {2, 4, 9, 18}) {
    if (PMPI_Type_create_f90_integer(range, &type) == MPI_SUCCESS) {
      check({"f90_integer", type, range == 2 ? 'u' : 'i'});
    }
  }
}

// Derived types are nothing for operations of MPI's, also where they are no more than an int.
void check_derived() {
  MPI_Datatype copy;
  PMPI_Type_dup(MPI_INT, &copy);
  check({"a duplicate of MPI_INT", copy, 'i'});
  PMPI_Type_free(&copy);
  MPI_Datatype derived;
  PMPI_Type_contiguous(1, MPI_INT, &derived);
  PMPI_Type_commit(&derived);
  check({"one MPI_INT", derived, 'i'});
  PMPI_Type_free(&derived);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  // This tells where an error goes that belongs to no communicator.
  for (const MPI_Comm any : {MPI_COMM_WORLD, MPI_COMM_SELF, comm}) {
    PMPI_Comm_set_errhandler(any, MPI_ERRORS_RETURN);
  }
  MPI_Barrier(comm);
  MPI_Barrier(comm);  // the team is made
  for (const Type& type : predefined) check(type);
  check_own_operation();
  check_by_kind();
  check_derived();
  int all = 0;
  PMPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("operations: %d accepted, %d refused\n", accepted, refused);
  std::fflush(stdout);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return all != 0;
}
