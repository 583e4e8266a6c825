// This file makes reductions with 64-bit counts. Where MPI has no MPI_*_c they are cut into pieces;
// the cut depends on the count alone, which all ranks share.
#include <cstring>
#include <numeric>

#include "mpi/fallback.hpp"
#include "mpi/fallback_counts.hpp"

namespace ropewalk::mpi::fallback {
namespace {

// Calls use(send, receive, count) for each piece of a reduction of `count` elements.
template <class Use>
void in_pieces(const void* send, void* receive, std::size_t count, Datatype type, const Use& use) {
  const std::int64_t extent = type_extent(type).bytes;
  const bool fixed_send = send == in_place() || send == nullptr;
  for (std::size_t done = 0; done < count; done += piece()) {
    use(fixed_send ? send : at(send, done, extent),
        receive == nullptr ? nullptr : at(receive, done, extent),
        static_cast<int>(std::min(piece(), count - done)));
  }
}

// Holds a result that may not go to its place yet. The gaps of a derived datatype are kept.
class HeldResult {
 public:
  HeldResult(void* target, std::size_t count, Datatype type) {
    if (count == 0) return;
    const TypeExtent extent = type_extent(type);
    lower_ = extent.true_lower;
    target_ = static_cast<std::byte*>(target) + lower_;
    const std::size_t bytes = (count - 1) * static_cast<std::size_t>(extent.bytes) +
                              static_cast<std::size_t>(extent.true_bytes);
    bytes_.emplace(std::vector<std::byte>(target_, target_ + bytes));
  }
  void* data() { return bytes_ ? bytes_->data() - lower_ : nullptr; }
  void release() {
    if (bytes_) std::memcpy(target_, bytes_->data(), bytes_->size());
  }

 private:
  std::byte* target_ = nullptr;
  std::int64_t lower_ = 0;
  std::optional<Kept<std::byte>> bytes_;
};

// Makes one reduction for each rank's share.
void reduce_shares(const void* send, void* receive, const std::size_t* counts, Datatype type, Op op,
                   Comm comm, Waiter* waiter) {
  const std::int64_t extent = type_extent(type).bytes;
  const int me = rank(comm);
  const bool replaced = send == in_place();
  const std::byte* input = static_cast<const std::byte*>(replaced ? receive : send);
  const std::size_t mine = counts[static_cast<std::size_t>(me)];
  // In place the result lies over input that later shares still need.
  HeldResult held(receive, replaced ? mine : 0, type);
  for (int root = 0; root < size(comm); ++root) {
    const std::size_t count = counts[static_cast<std::size_t>(root)];
    void* result = root != me ? nullptr : replaced ? held.data() : receive;
    reduce(input, result, count, type, op, root, comm, waiter);
    input = at(input, count, extent);
  }
  held.release();
}

}  // namespace

void allreduce(const void* send, void* receive, std::size_t count, Datatype type, Op op, Comm comm,
               Waiter* waiter) {
  const Functions& call = library().call;
  if (!fits(count) && call.allreduce_c != nullptr) {
    return perform(waiter, "MPI_Allreduce_c", call.allreduce_c, call.iallreduce_c, send, receive,
                   c(count), type.value, op.value, comm.value);
  }
  const auto once = [&](const void* from, void* into, int n) {
    perform(waiter, "MPI_Allreduce", call.allreduce, call.iallreduce, from, into, n, type.value,
            op.value, comm.value);
  };
  if (fits(count)) return once(send, receive, static_cast<int>(count));
  in_pieces(send, receive, count, type, once);
}

Request start_allreduce(const void* send, void* receive, std::size_t count, Datatype type, Op op,
                        Comm comm) {
  Request made;
  check(library().call.iallreduce(send, receive, static_cast<int>(count), type.value, op.value,
                                  comm.value, &made.value),
        "MPI_Iallreduce");
  return made;
}

void reduce(const void* send, void* receive, std::size_t count, Datatype type, Op op, int root,
            Comm comm, Waiter* waiter) {
  const Functions& call = library().call;
  if (!fits(count) && call.reduce_c != nullptr) {
    return perform(waiter, "MPI_Reduce_c", call.reduce_c, call.ireduce_c, send, receive, c(count),
                   type.value, op.value, root, comm.value);
  }
  const auto once = [&](const void* from, void* into, int n) {
    perform(waiter, "MPI_Reduce", call.reduce, call.ireduce, from, into, n, type.value, op.value,
            root, comm.value);
  };
  if (fits(count)) return once(send, receive, static_cast<int>(count));
  in_pieces(send, receive, count, type, once);
}

void scan(const void* send, void* receive, std::size_t count, Datatype type, Op op, Comm comm,
          Waiter* waiter) {
  const Functions& call = library().call;
  if (!fits(count) && call.scan_c != nullptr) {
    return perform(waiter, "MPI_Scan_c", call.scan_c, call.iscan_c, send, receive, c(count),
                   type.value, op.value, comm.value);
  }
  const auto once = [&](const void* from, void* into, int n) {
    perform(waiter, "MPI_Scan", call.scan, call.iscan, from, into, n, type.value, op.value,
            comm.value);
  };
  if (fits(count)) return once(send, receive, static_cast<int>(count));
  in_pieces(send, receive, count, type, once);
}

void exscan(const void* send, void* receive, std::size_t count, Datatype type, Op op, Comm comm,
            Waiter* waiter) {
  const Functions& call = library().call;
  if (!fits(count) && call.exscan_c != nullptr) {
    return perform(waiter, "MPI_Exscan_c", call.exscan_c, call.iexscan_c, send, receive, c(count),
                   type.value, op.value, comm.value);
  }
  const auto once = [&](const void* from, void* into, int n) {
    perform(waiter, "MPI_Exscan", call.exscan, call.iexscan, from, into, n, type.value, op.value,
            comm.value);
  };
  if (fits(count)) return once(send, receive, static_cast<int>(count));
  in_pieces(send, receive, count, type, once);
}

void reduce_scatter(const void* send, void* receive, const std::size_t* counts, Datatype type,
                    Op op, Comm comm, Waiter* waiter) {
  const Functions& call = library().call;
  const auto n = static_cast<std::size_t>(size(comm));
  if (fits(std::accumulate(counts, counts + n, std::size_t{0}))) {
    const Kept<int> ints = numbers<int>(counts, n);
    return perform(waiter, "MPI_Reduce_scatter", call.reduce_scatter, call.ireduce_scatter, send,
                   receive, ints.data(), type.value, op.value, comm.value);
  }
  if (call.reduce_scatter_c == nullptr) {
    return reduce_shares(send, receive, counts, type, op, comm, waiter);
  }
  const Kept<Count> longs = numbers<Count>(counts, n);
  perform(waiter, "MPI_Reduce_scatter_c", call.reduce_scatter_c, call.ireduce_scatter_c, send,
          receive, longs.data(), type.value, op.value, comm.value);
}

void reduce_scatter_block(const void* send, void* receive, std::size_t count, Datatype type, Op op,
                          Comm comm, Waiter* waiter) {
  const Functions& call = library().call;
  const auto n = static_cast<std::size_t>(size(comm));
  if (fits(count * n)) {
    return perform(waiter, "MPI_Reduce_scatter_block", call.reduce_scatter_block,
                   call.ireduce_scatter_block, send, receive, static_cast<int>(count), type.value,
                   op.value, comm.value);
  }
  if (call.reduce_scatter_block_c == nullptr) {
    const std::vector<std::size_t> counts(n, count);
    return reduce_shares(send, receive, counts.data(), type, op, comm, waiter);
  }
  perform(waiter, "MPI_Reduce_scatter_block_c", call.reduce_scatter_block_c,
          call.ireduce_scatter_block_c, send, receive, c(count), type.value, op.value, comm.value);
}

}  // namespace ropewalk::mpi::fallback
