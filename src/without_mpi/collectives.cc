// The collectives that ropewalk itself needs carry a few bytes or numbers through the store.
#include <algorithm>
#include <cstring>

#include "ropewalk/error.hpp"
#include "without_mpi/members.hpp"

namespace ropewalk::without_mpi {
namespace {

int barrier(Word comm) {
  return on(comm, [](Member& member) { member.share("here"); });
}

int bcast(void* data, int count, Word type, int root, Word comm) {
  return on(comm, [&](Member& member) {
    require_bytes(type);
    const auto bytes = static_cast<std::size_t>(count);
    const std::vector<std::string> all = member.share(
        member.rank() == root ? std::string(static_cast<const char*>(data), bytes) : "here");
    const std::string& found = all.at(static_cast<std::size_t>(root));
    std::memcpy(data, found.data(), std::min(bytes, found.size()));
  });
}

int allgather(const void* send, int count, Word type, void* receive, int, Word, Word comm) {
  return on(comm, [&](Member& member) {
    require_bytes(type);
    const auto bytes = static_cast<std::size_t>(count);
    auto* to = static_cast<std::byte*>(receive);
    for (const std::string& one :
         member.share(std::string(static_cast<const char*>(send), bytes))) {
      std::memcpy(to, one.data(), std::min(bytes, one.size()));
      to += bytes;
    }
  });
}

template <class T>
T combine(Word op, T one, T other) {
  if (op == abi().op(mpi::OpName::min)) return std::min(one, other);
  if (op == abi().op(mpi::OpName::max)) return std::max(one, other);
  if (op == abi().op(mpi::OpName::sum)) return one + other;
  throw Error(ErrorCode::mpi, "operation: none of min, max and sum");
}

// Combines in place and in the order of ranks, so that all get the same bits.
template <class T>
void combine_all(Member& member, T* values, std::size_t count, Word op) {
  const std::vector<std::string> all =
      member.share(std::string(reinterpret_cast<const char*>(values), count * sizeof(T)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    for (std::size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, all[rank].data() + i * sizeof(T), sizeof(T));
      values[i] = rank == 0 ? value : combine(op, values[i], value);
    }
  }
}

int allreduce(const void* send, void* values, int count, Word type, Word op, Word comm) {
  return on(comm, [&](Member& member) {
    const auto number = static_cast<std::size_t>(count);
    if (mpi::address(send) != abi().in_place) {
      throw Error(ErrorCode::mpi, "send buffer: expected MPI_IN_PLACE");
    }
    if (type == abi().datatype(mpi::DatatypeName::int64)) {
      combine_all(member, static_cast<std::int64_t*>(values), number, op);
    } else if (type == abi().datatype(mpi::DatatypeName::double_)) {
      combine_all(member, static_cast<double*>(values), number, op);
    } else {
      throw Error(ErrorCode::mpi, "datatype: neither MPI_INT64_T nor MPI_DOUBLE");
    }
  });
}

}  // namespace

void fill_collectives(mpi::Functions& call) {
  call.barrier = &barrier;
  call.bcast = &bcast;
  call.allgather = &allgather;
  call.allreduce = &allreduce;
}

}  // namespace ropewalk::without_mpi
