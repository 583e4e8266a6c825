// Movements with a count and a displacement a rank. Displacements are known to one rank alone, so
// without MPI_*_c the ranks agree first whether any of them is beyond an int; then all send
// messages, on a duplicate of the communicator.
#include <array>

#include "mpi/fallback.hpp"
#include "mpi/fallback_counts.hpp"

namespace ropewalk::mpi::fallback {
namespace {

struct Blocks {
  const std::size_t* counts;
  const std::size_t* displacements;
  Datatype type;
};

bool all_fit(const Blocks& blocks, std::size_t n) {
  if (blocks.counts == nullptr) return true;
  for (std::size_t i = 0; i < n; ++i) {
    if (!fits(blocks.counts[i]) || !fits(blocks.displacements[i])) return false;
  }
  return true;
}

bool all_ranks_fit(bool mine, Comm comm) {
  std::array<std::int64_t, 1> large{mine ? 0 : 1};
  all_reduce(large, Combine::max, comm);
  return large[0] == 0;
}

// The messages of one call, on a communicator of their own: the user's receives from any source
// must not match them.
class Messages {
 public:
  // Not a duplicate: that would call what the program has given to copy its attributes.
  explicit Messages(Comm comm) : comm_(split(comm, 0, rank(comm))) {}
  ~Messages() {
    try {
      free(comm_);
    } catch (...) {  // the error that led here is on its way already
    }
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  void send(const void* data, std::size_t count, Datatype type, int peer) {
    const Counted n(count, type);
    check(library().call.isend(data, n.count(), n.type(), peer, 0, comm_.value,
                               &requests_.emplace_back(request_null()).value),
          "MPI_Isend");
  }
  void receive(void* data, std::size_t count, Datatype type, int peer) {
    const Counted n(count, type);
    check(library().call.irecv(data, n.count(), n.type(), peer, 0, comm_.value,
                               &requests_.emplace_back(request_null()).value),
          "MPI_Irecv");
  }
  void send_blocks(const void* data, const Blocks& blocks, int but) {
    const std::int64_t extent = type_extent(blocks.type).bytes;
    for (int peer = 0; peer < size(comm_); ++peer) {
      const auto i = static_cast<std::size_t>(peer);
      if (peer == but) continue;
      send(at(data, blocks.displacements[i], extent), blocks.counts[i], blocks.type, peer);
    }
  }
  void receive_blocks(void* data, const Blocks& blocks, int but) {
    const std::int64_t extent = type_extent(blocks.type).bytes;
    for (int peer = 0; peer < size(comm_); ++peer) {
      const auto i = static_cast<std::size_t>(peer);
      if (peer == but) continue;
      receive(at(data, blocks.displacements[i], extent), blocks.counts[i], blocks.type, peer);
    }
  }
  void wait() { wait_all(requests_); }

 private:
  Comm comm_;
  std::vector<Request> requests_;
};

constexpr int nobody = -1;

void allgatherv_messages(const void* send, std::size_t send_count, Datatype send_type,
                         void* receive, const Blocks& blocks, Comm comm) {
  const int me = rank(comm);
  const bool replaced = send == in_place();
  const auto own = static_cast<std::size_t>(me);
  const void* data =
      replaced ? at(receive, blocks.displacements[own], type_extent(blocks.type).bytes) : send;
  Messages messages(comm);
  messages.receive_blocks(receive, blocks, replaced ? me : nobody);
  for (int peer = 0; peer < size(comm); ++peer) {
    if (replaced && peer == me) continue;
    messages.send(data, replaced ? blocks.counts[own] : send_count,
                  replaced ? blocks.type : send_type, peer);
  }
  messages.wait();
}

// In place: what is sent is packed first, what is received is unpacked last.
void alltoallv_replace(void* data, const Blocks& blocks, Comm comm) {
  const auto n = static_cast<std::size_t>(size(comm));
  const Extent extent = type_extent(blocks.type);
  const auto bytes = static_cast<std::size_t>(type_size(blocks.type));
  std::vector<std::vector<std::byte>> out(n), in(n);
  Messages messages(comm);
  for (std::size_t i = 0; i < n; ++i) {
    out[i].resize(blocks.counts[i] * bytes);
    in[i].resize(blocks.counts[i] * bytes);
    pack(at(data, blocks.displacements[i], extent.bytes), blocks.counts[i], blocks.type,
         out[i].data(), comm);
    messages.receive(in[i].data(), in[i].size(), byte_type(), static_cast<int>(i));
    messages.send(out[i].data(), out[i].size(), byte_type(), static_cast<int>(i));
  }
  messages.wait();
  for (std::size_t i = 0; i < n; ++i) {
    unpack(in[i].data(), at(data, blocks.displacements[i], extent.bytes), blocks.counts[i],
           blocks.type, comm);
  }
}

}  // namespace

void allgatherv(const void* send, std::size_t send_count, Datatype send_type, void* receive,
                const std::size_t* counts, const std::size_t* displacements, Datatype type,
                Comm comm) {
  const Functions& call = library().call;
  const auto n = static_cast<std::size_t>(size(comm));
  const Blocks blocks{counts, displacements, type};
  if (call.allgatherv_c != nullptr) {
    const std::vector<Count> lengths = numbers<Count>(counts, n);
    const std::vector<Count> offsets = numbers<Count>(displacements, n);
    return check(call.allgatherv_c(send, c(send_count), send_type.value, receive, lengths.data(),
                                   offsets.data(), type.value, comm.value),
                 "MPI_Allgatherv_c");
  }
  if (!all_ranks_fit(all_fit(blocks, n), comm)) {
    return allgatherv_messages(send, send_count, send_type, receive, blocks, comm);
  }
  const Counted out(send == in_place() ? 0 : send_count, send_type);
  const std::vector<int> lengths = numbers<int>(counts, n);
  const std::vector<int> offsets = numbers<int>(displacements, n);
  check(call.allgatherv(send, out.count(), out.type(), receive, lengths.data(), offsets.data(),
                        type.value, comm.value),
        "MPI_Allgatherv");
}

void gatherv(const void* send, std::size_t send_count, Datatype send_type, void* receive,
             const std::size_t* counts, const std::size_t* displacements, Datatype type, int root,
             Comm comm) {
  const Functions& call = library().call;
  const auto n = static_cast<std::size_t>(size(comm));
  const bool am_root = rank(comm) == root;
  const Blocks blocks{am_root ? counts : nullptr, displacements, type};
  if (call.gatherv_c != nullptr) {
    const std::vector<Count> lengths = numbers<Count>(blocks.counts, n);
    const std::vector<Count> offsets = numbers<Count>(am_root ? displacements : nullptr, n);
    return check(call.gatherv_c(send, c(send_count), send_type.value, receive, lengths.data(),
                                offsets.data(), type.value, root, comm.value),
                 "MPI_Gatherv_c");
  }
  if (!all_ranks_fit(all_fit(blocks, n), comm)) {
    Messages messages(comm);
    const bool replaced = send == in_place();
    if (am_root) messages.receive_blocks(receive, blocks, replaced ? root : nobody);
    if (!replaced) messages.send(send, send_count, send_type, root);
    return messages.wait();
  }
  const Counted out(send == in_place() ? 0 : send_count, send_type);
  const std::vector<int> lengths = numbers<int>(blocks.counts, n);
  const std::vector<int> offsets = numbers<int>(am_root ? displacements : nullptr, n);
  check(call.gatherv(send, out.count(), out.type(), receive, lengths.data(), offsets.data(),
                     type.value, root, comm.value),
        "MPI_Gatherv");
}

void scatterv(const void* send, const std::size_t* counts, const std::size_t* displacements,
              Datatype type, void* receive, std::size_t receive_count, Datatype receive_type,
              int root, Comm comm) {
  const Functions& call = library().call;
  const auto n = static_cast<std::size_t>(size(comm));
  const bool am_root = rank(comm) == root;
  const Blocks blocks{am_root ? counts : nullptr, displacements, type};
  if (call.scatterv_c != nullptr) {
    const std::vector<Count> lengths = numbers<Count>(blocks.counts, n);
    const std::vector<Count> offsets = numbers<Count>(am_root ? displacements : nullptr, n);
    return check(call.scatterv_c(send, lengths.data(), offsets.data(), type.value, receive,
                                 c(receive_count), receive_type.value, root, comm.value),
                 "MPI_Scatterv_c");
  }
  if (!all_ranks_fit(all_fit(blocks, n), comm)) {
    Messages messages(comm);
    const bool replaced = receive == in_place();
    if (!replaced) messages.receive(receive, receive_count, receive_type, root);
    if (am_root) messages.send_blocks(send, blocks, replaced ? root : nobody);
    return messages.wait();
  }
  const Counted in(receive == in_place() ? 0 : receive_count, receive_type);
  const std::vector<int> lengths = numbers<int>(blocks.counts, n);
  const std::vector<int> offsets = numbers<int>(am_root ? displacements : nullptr, n);
  check(call.scatterv(send, lengths.data(), offsets.data(), type.value, receive, in.count(),
                      in.type(), root, comm.value),
        "MPI_Scatterv");
}

void alltoallv(const void* send, const std::size_t* send_counts,
               const std::size_t* send_displacements, Datatype send_type, void* receive,
               const std::size_t* counts, const std::size_t* displacements, Datatype type,
               Comm comm) {
  const Functions& call = library().call;
  const auto n = static_cast<std::size_t>(size(comm));
  const bool replaced = send == in_place();
  const Blocks from{replaced ? nullptr : send_counts, send_displacements, send_type};
  const Blocks into{counts, displacements, type};
  if (call.alltoallv_c != nullptr) {
    const std::vector<Count> out = numbers<Count>(from.counts, n);
    const std::vector<Count> out_at = numbers<Count>(replaced ? nullptr : send_displacements, n);
    const std::vector<Count> in = numbers<Count>(counts, n);
    const std::vector<Count> in_at = numbers<Count>(displacements, n);
    return check(call.alltoallv_c(send, out.data(), out_at.data(), send_type.value, receive,
                                  in.data(), in_at.data(), type.value, comm.value),
                 "MPI_Alltoallv_c");
  }
  if (!all_ranks_fit(all_fit(from, n) && all_fit(into, n), comm)) {
    if (replaced) return alltoallv_replace(receive, into, comm);
    Messages messages(comm);
    messages.receive_blocks(receive, into, nobody);
    messages.send_blocks(send, from, nobody);
    return messages.wait();
  }
  const std::vector<int> out = numbers<int>(from.counts, n);
  const std::vector<int> out_at = numbers<int>(replaced ? nullptr : send_displacements, n);
  const std::vector<int> in = numbers<int>(counts, n);
  const std::vector<int> in_at = numbers<int>(displacements, n);
  check(call.alltoallv(send, out.data(), out_at.data(), send_type.value, receive, in.data(),
                       in_at.data(), type.value, comm.value),
        "MPI_Alltoallv");
}

}  // namespace ropewalk::mpi::fallback
