// Reductions with 64-bit counts. Where MPI has no MPI_*_c they are cut into pieces; the cut depends
// on the count alone, which all ranks share.
#include <cstring>
#include <numeric>

#include "mpi/fallback.hpp"
#include "mpi/fallback_counts.hpp"

namespace ropewalk::mpi::fallback {
namespace {

// use(send, receive, count) for each piece of a reduction of `count` elements.
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

// A result that may not go where it belongs yet. The gaps of a derived datatype are kept.
class HeldResult {
 public:
  HeldResult(void* target, std::size_t count, Datatype type) {
    if (count == 0) return;
    const Extent extent = type_extent(type);
    lower_ = extent.true_lower;
    target_ = static_cast<std::byte*>(target) + lower_;
    bytes_.resize((count - 1) * static_cast<std::size_t>(extent.bytes) +
                  static_cast<std::size_t>(extent.true_bytes));
    std::memcpy(bytes_.data(), target_, bytes_.size());
  }
  void* data() { return bytes_.data() - lower_; }
  void release() {
    if (!bytes_.empty()) std::memcpy(target_, bytes_.data(), bytes_.size());
  }

 private:
  std::byte* target_ = nullptr;
  std::int64_t lower_ = 0;
  std::vector<std::byte> bytes_;
};

// One reduction for each rank's share.
void reduce_shares(const void* send, void* receive, const std::size_t* counts, Datatype type, Op op,
                   Comm comm) {
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
    reduce(input, result, count, type, op, root, comm);
    input = at(input, count, extent);
  }
  held.release();
}

}  // namespace

void allreduce(const void* send, void* receive, std::size_t count, Datatype type, Op op,
               Comm comm) {
  const Functions& call = library().call;
  if (!fits(count) && call.allreduce_c != nullptr) {
    return check(call.allreduce_c(send, receive, c(count), type.value, op.value, comm.value),
                 "MPI_Allreduce_c");
  }
  const auto once = [&](const void* from, void* into, int n) {
    check(call.allreduce(from, into, n, type.value, op.value, comm.value), "MPI_Allreduce");
  };
  if (fits(count)) return once(send, receive, static_cast<int>(count));
  in_pieces(send, receive, count, type, once);
}

void reduce(const void* send, void* receive, std::size_t count, Datatype type, Op op, int root,
            Comm comm) {
  const Functions& call = library().call;
  if (!fits(count) && call.reduce_c != nullptr) {
    return check(call.reduce_c(send, receive, c(count), type.value, op.value, root, comm.value),
                 "MPI_Reduce_c");
  }
  const auto once = [&](const void* from, void* into, int n) {
    check(call.reduce(from, into, n, type.value, op.value, root, comm.value), "MPI_Reduce");
  };
  if (fits(count)) return once(send, receive, static_cast<int>(count));
  in_pieces(send, receive, count, type, once);
}

void scan(const void* send, void* receive, std::size_t count, Datatype type, Op op, Comm comm) {
  const Functions& call = library().call;
  if (!fits(count) && call.scan_c != nullptr) {
    return check(call.scan_c(send, receive, c(count), type.value, op.value, comm.value),
                 "MPI_Scan_c");
  }
  const auto once = [&](const void* from, void* into, int n) {
    check(call.scan(from, into, n, type.value, op.value, comm.value), "MPI_Scan");
  };
  if (fits(count)) return once(send, receive, static_cast<int>(count));
  in_pieces(send, receive, count, type, once);
}

void exscan(const void* send, void* receive, std::size_t count, Datatype type, Op op, Comm comm) {
  const Functions& call = library().call;
  if (!fits(count) && call.exscan_c != nullptr) {
    return check(call.exscan_c(send, receive, c(count), type.value, op.value, comm.value),
                 "MPI_Exscan_c");
  }
  const auto once = [&](const void* from, void* into, int n) {
    check(call.exscan(from, into, n, type.value, op.value, comm.value), "MPI_Exscan");
  };
  if (fits(count)) return once(send, receive, static_cast<int>(count));
  in_pieces(send, receive, count, type, once);
}

void reduce_scatter(const void* send, void* receive, const std::size_t* counts, Datatype type,
                    Op op, Comm comm) {
  const Functions& call = library().call;
  const auto n = static_cast<std::size_t>(size(comm));
  if (fits(std::accumulate(counts, counts + n, std::size_t{0}))) {
    const std::vector<int> ints = numbers<int>(counts, n);
    return check(call.reduce_scatter(send, receive, ints.data(), type.value, op.value, comm.value),
                 "MPI_Reduce_scatter");
  }
  if (call.reduce_scatter_c == nullptr) {
    return reduce_shares(send, receive, counts, type, op, comm);
  }
  const std::vector<Count> longs = numbers<Count>(counts, n);
  check(call.reduce_scatter_c(send, receive, longs.data(), type.value, op.value, comm.value),
        "MPI_Reduce_scatter_c");
}

void reduce_scatter_block(const void* send, void* receive, std::size_t count, Datatype type, Op op,
                          Comm comm) {
  const Functions& call = library().call;
  const auto n = static_cast<std::size_t>(size(comm));
  if (fits(count * n)) {
    return check(call.reduce_scatter_block(send, receive, static_cast<int>(count), type.value,
                                           op.value, comm.value),
                 "MPI_Reduce_scatter_block");
  }
  if (call.reduce_scatter_block_c == nullptr) {
    const std::vector<std::size_t> counts(n, count);
    return reduce_shares(send, receive, counts.data(), type, op, comm);
  }
  check(call.reduce_scatter_block_c(send, receive, c(count), type.value, op.value, comm.value),
        "MPI_Reduce_scatter_block_c");
}

}  // namespace ropewalk::mpi::fallback
