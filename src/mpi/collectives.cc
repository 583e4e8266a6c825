// These are the collectives that ropewalk's own bootstrap uses.
#include "mpi/collectively.hpp"
#include "mpi/large_count.hpp"
#include "mpi/library.hpp"

namespace ropewalk::mpi {
namespace {

Word op_word(Combine combine) {
  const Abi& abi = library().abi;
  switch (combine) {
    case Combine::sum:
      return abi.op(OpName::sum);
    case Combine::min:
      return abi.op(OpName::min);
    case Combine::max:
      break;
  }
  return abi.op(OpName::max);
}

// Agreements are a few values: their count always fits an int.
void combine_all(void* values, std::size_t count, DatatypeName type, Combine combine, Comm comm) {
  meet(comm);
  const Abi& abi = library().abi;
  check(library().call.allreduce(in_place(), values, static_cast<int>(count), abi.datatype(type),
                                 op_word(combine), comm.value),
        "MPI_Allreduce");
}

}  // namespace

void barrier(Comm comm) {
  meet(comm);
  check(library().call.barrier(comm.value), "MPI_Barrier");
}

void broadcast(void* data, std::size_t bytes, int root, Comm comm) {
  meet(comm);
  const Functions& call = library().call;
  const Word byte = byte_type().value;
  if (fits_int(bytes)) {
    check(call.bcast(data, static_cast<int>(bytes), byte, root, comm.value), "MPI_Bcast");
  } else if (call.bcast_c != nullptr) {
    check(call.bcast_c(data, static_cast<Count>(bytes), byte, root, comm.value), "MPI_Bcast_c");
  } else {
    const LargeType type(bytes, byte_type());
    check(call.bcast(data, 1, type.word(), root, comm.value), "MPI_Bcast");
  }
}

void all_gather(const void* send, void* receive, std::size_t bytes_each, Comm comm) {
  meet(comm);
  const Functions& call = library().call;
  const Word byte = byte_type().value;
  if (fits_int(bytes_each)) {
    const int count = static_cast<int>(bytes_each);
    check(call.allgather(send, count, byte, receive, count, byte, comm.value), "MPI_Allgather");
  } else if (call.allgather_c != nullptr) {
    const auto count = static_cast<Count>(bytes_each);
    check(call.allgather_c(send, count, byte, receive, count, byte, comm.value), "MPI_Allgather_c");
  } else {
    const LargeType type(bytes_each, byte_type());
    check(call.allgather(send, 1, type.word(), receive, 1, type.word(), comm.value),
          "MPI_Allgather");
  }
}

void all_reduce(std::span<std::int64_t> values, Combine combine, Comm comm) {
  combine_all(values.data(), values.size(), DatatypeName::int64, combine, comm);
}

void all_reduce(std::span<double> values, Combine combine, Comm comm) {
  combine_all(values.data(), values.size(), DatatypeName::double_, combine, comm);
}

}  // namespace ropewalk::mpi
