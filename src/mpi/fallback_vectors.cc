// This file moves blocks with a count and a displacement for each rank. Displacements are known to
// one rank alone, so without MPI_*_c the ranks agree first whether any of them is beyond an int;
// then all send messages, on a duplicate of the communicator. An allgatherv whose bytes, which all
// ranks know, fit an int needs no agreement: a rank with displacements beyond receives into memory
// of its own.
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

bool all_ranks_fit(bool mine, Comm comm, Waiter* waiter) {
  const Abi& abi = library().abi;
  const Functions& call = library().call;
  const Kept<std::int64_t> large({mine ? 0 : 1});
  perform(waiter, "MPI_Allreduce", call.allreduce, call.iallreduce, in_place(), large.data(), 1,
          abi.datatype(DatatypeName::int64), abi.op(OpName::max), comm.value);
  return *large.data() == 0;
}

// The messages of one call go over a communicator of their own, because the user's receives from
// any source must not match them. A caller with a waiter passes such a communicator.
class Messages {
 public:
  // This is no duplicate, because MPI_Comm_dup would call the functions that the program has
  // registered for copying attributes.
  Messages(Comm comm, Waiter* waiter)
      : waiter_(waiter), comm_(waiter != nullptr ? comm : split(comm, 0, rank(comm))) {}
  ~Messages() {
    for (Request& request : requests_) leave(request);
    if (waiter_ != nullptr) return;
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
  void wait() {
    if (waiter_ == nullptr) return wait_all(requests_);
    for (Request& request : requests_) waiter_->wait(request);
  }

 private:
  Waiter* waiter_;
  Comm comm_;
  std::vector<Request> requests_;
};

constexpr int nobody = -1;

void allgatherv_messages(const void* send, std::size_t send_count, Datatype send_type,
                         void* receive, const Blocks& blocks, Comm comm, Waiter* waiter) {
  const int me = rank(comm);
  const bool replaced = send == in_place();
  const auto own = static_cast<std::size_t>(me);
  const void* data =
      replaced ? at(receive, blocks.displacements[own], type_extent(blocks.type).bytes) : send;
  Messages messages(comm, waiter);
  messages.receive_blocks(receive, blocks, replaced ? me : nobody);
  for (int peer = 0; peer < size(comm); ++peer) {
    if (replaced && peer == me) continue;
    messages.send(data, replaced ? blocks.counts[own] : send_count,
                  replaced ? blocks.type : send_type, peer);
  }
  messages.wait();
}

std::size_t bytes_in_all(const Blocks& blocks, std::size_t n) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i) count += blocks.counts[i];
  return count * static_cast<std::size_t>(type_size(blocks.type));
}

// The bytes of all blocks fit an int; their displacements do not.
void allgatherv_packed(const void* send, std::size_t send_count, Datatype send_type, void* receive,
                       const Blocks& blocks, Comm comm, Waiter* waiter) {
  const Functions& call = library().call;
  const auto n = static_cast<std::size_t>(size(comm));
  const std::int64_t extent = type_extent(blocks.type).bytes;
  const auto own = static_cast<std::size_t>(rank(comm));
  const auto each = static_cast<std::size_t>(type_size(blocks.type));
  const bool replaced = send == in_place();
  const Kept<std::byte> packed(std::vector<std::byte>(bytes_in_all(blocks, n) + 1));  // no null
  std::vector<int> ends{0};
  std::vector<int> sizes;
  for (std::size_t i = 0; i < n; ++i) {
    sizes.push_back(static_cast<int>(blocks.counts[i] * each));
    ends.push_back(ends.back() + sizes.back());
  }
  const Kept<int> lengths(std::move(sizes));
  const Kept<int> offsets(std::move(ends));
  // What is sent is bytes too: Open MPI takes the size of its type for that of all blocks, and
  // ranks that disagree on it may take different algorithms.
  const std::size_t sent =
      replaced ? 0 : send_count * static_cast<std::size_t>(type_size(send_type));
  const Kept<std::byte> outgoing(std::vector<std::byte>(sent + 1));
  if (replaced) {
    pack(at(receive, blocks.displacements[own], extent), blocks.counts[own], blocks.type,
         packed.data() + offsets.data()[own], comm);
  } else {
    pack(send, send_count, send_type, outgoing.data(), comm);
  }
  const Counted out(sent, byte_type());
  perform(waiter, "MPI_Allgatherv", call.allgatherv, call.iallgatherv,
          replaced ? send : outgoing.data(), out.count(), out.type(), packed.data(), lengths.data(),
          offsets.data(), byte_type().value, comm.value);
  for (std::size_t i = 0; i < n; ++i) {
    unpack(packed.data() + offsets.data()[i], at(receive, blocks.displacements[i], extent),
           blocks.counts[i], blocks.type, comm);
  }
}

// In place: what is sent is packed first, what is received is unpacked last.
void alltoallv_replace(void* data, const Blocks& blocks, Comm comm, Waiter* waiter) {
  const auto n = static_cast<std::size_t>(size(comm));
  const TypeExtent extent = type_extent(blocks.type);
  const auto bytes = static_cast<std::size_t>(type_size(blocks.type));
  std::vector<Kept<std::byte>> out, in;
  Messages messages(comm, waiter);
  for (std::size_t i = 0; i < n; ++i) {
    out.emplace_back(std::vector<std::byte>(blocks.counts[i] * bytes));
    in.emplace_back(std::vector<std::byte>(blocks.counts[i] * bytes));
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

bool counts_need_agreement() { return library().call.gatherv_c == nullptr; }

void allgatherv(const void* send, std::size_t send_count, Datatype send_type, void* receive,
                const std::size_t* counts, const std::size_t* displacements, Datatype type,
                Comm comm, Waiter* waiter) {
  const Functions& call = library().call;
  const auto n = static_cast<std::size_t>(size(comm));
  const Blocks blocks{counts, displacements, type};
  if (call.allgatherv_c != nullptr) {
    const Kept<Count> lengths = numbers<Count>(counts, n);
    const Kept<Count> offsets = numbers<Count>(displacements, n);
    return perform(waiter, "MPI_Allgatherv_c", call.allgatherv_c, call.iallgatherv_c, send,
                   c(send_count), send_type.value, receive, lengths.data(), offsets.data(),
                   type.value, comm.value);
  }
  if (fits(bytes_in_all(blocks, n))) {
    if (!all_fit(blocks, n)) {
      return allgatherv_packed(send, send_count, send_type, receive, blocks, comm, waiter);
    }
  } else if (!all_ranks_fit(all_fit(blocks, n), comm, waiter)) {
    return allgatherv_messages(send, send_count, send_type, receive, blocks, comm, waiter);
  }
  const Counted out(send == in_place() ? 0 : send_count, send_type);
  const Kept<int> lengths = numbers<int>(counts, n);
  const Kept<int> offsets = numbers<int>(displacements, n);
  perform(waiter, "MPI_Allgatherv", call.allgatherv, call.iallgatherv, send, out.count(),
          out.type(), receive, lengths.data(), offsets.data(), type.value, comm.value);
}

void gatherv(const void* send, std::size_t send_count, Datatype send_type, void* receive,
             const std::size_t* counts, const std::size_t* displacements, Datatype type, int root,
             Comm comm, Waiter* waiter) {
  const Functions& call = library().call;
  const auto n = static_cast<std::size_t>(size(comm));
  const bool am_root = rank(comm) == root;
  const Blocks blocks{am_root ? counts : nullptr, displacements, type};
  if (call.gatherv_c != nullptr) {
    const Kept<Count> lengths = numbers<Count>(blocks.counts, n);
    const Kept<Count> offsets = numbers<Count>(am_root ? displacements : nullptr, n);
    return perform(waiter, "MPI_Gatherv_c", call.gatherv_c, call.igatherv_c, send, c(send_count),
                   send_type.value, receive, lengths.data(), offsets.data(), type.value, root,
                   comm.value);
  }
  if (!all_ranks_fit(all_fit(blocks, n), comm, waiter)) {
    Messages messages(comm, waiter);
    const bool replaced = send == in_place();
    if (am_root) messages.receive_blocks(receive, blocks, replaced ? root : nobody);
    if (!replaced) messages.send(send, send_count, send_type, root);
    return messages.wait();
  }
  const Counted out(send == in_place() ? 0 : send_count, send_type);
  const Kept<int> lengths = numbers<int>(blocks.counts, n);
  const Kept<int> offsets = numbers<int>(am_root ? displacements : nullptr, n);
  perform(waiter, "MPI_Gatherv", call.gatherv, call.igatherv, send, out.count(), out.type(),
          receive, lengths.data(), offsets.data(), type.value, root, comm.value);
}

void scatterv(const void* send, const std::size_t* counts, const std::size_t* displacements,
              Datatype type, void* receive, std::size_t receive_count, Datatype receive_type,
              int root, Comm comm, Waiter* waiter) {
  const Functions& call = library().call;
  const auto n = static_cast<std::size_t>(size(comm));
  const bool am_root = rank(comm) == root;
  const Blocks blocks{am_root ? counts : nullptr, displacements, type};
  if (call.scatterv_c != nullptr) {
    const Kept<Count> lengths = numbers<Count>(blocks.counts, n);
    const Kept<Count> offsets = numbers<Count>(am_root ? displacements : nullptr, n);
    return perform(waiter, "MPI_Scatterv_c", call.scatterv_c, call.iscatterv_c, send,
                   lengths.data(), offsets.data(), type.value, receive, c(receive_count),
                   receive_type.value, root, comm.value);
  }
  if (!all_ranks_fit(all_fit(blocks, n), comm, waiter)) {
    Messages messages(comm, waiter);
    const bool replaced = receive == in_place();
    if (!replaced) messages.receive(receive, receive_count, receive_type, root);
    if (am_root) messages.send_blocks(send, blocks, replaced ? root : nobody);
    return messages.wait();
  }
  const Counted in(receive == in_place() ? 0 : receive_count, receive_type);
  const Kept<int> lengths = numbers<int>(blocks.counts, n);
  const Kept<int> offsets = numbers<int>(am_root ? displacements : nullptr, n);
  perform(waiter, "MPI_Scatterv", call.scatterv, call.iscatterv, send, lengths.data(),
          offsets.data(), type.value, receive, in.count(), in.type(), root, comm.value);
}

void alltoallv(const void* send, const std::size_t* send_counts,
               const std::size_t* send_displacements, Datatype send_type, void* receive,
               const std::size_t* counts, const std::size_t* displacements, Datatype type,
               Comm comm, Waiter* waiter) {
  const Functions& call = library().call;
  const auto n = static_cast<std::size_t>(size(comm));
  const bool replaced = send == in_place();
  const Blocks from{replaced ? nullptr : send_counts, send_displacements, send_type};
  const Blocks into{counts, displacements, type};
  // MPI_Ialltoallv of Open MPI 5.0.11 in place gives wrong data where blocks differ in length.
  if (replaced && waiter != nullptr && family() == Family::openmpi) {
    return alltoallv_replace(receive, into, comm, waiter);
  }
  if (call.alltoallv_c != nullptr) {
    const Kept<Count> out = numbers<Count>(from.counts, n);
    const Kept<Count> out_at = numbers<Count>(replaced ? nullptr : send_displacements, n);
    const Kept<Count> in = numbers<Count>(counts, n);
    const Kept<Count> in_at = numbers<Count>(displacements, n);
    return perform(waiter, "MPI_Alltoallv_c", call.alltoallv_c, call.ialltoallv_c, send, out.data(),
                   out_at.data(), send_type.value, receive, in.data(), in_at.data(), type.value,
                   comm.value);
  }
  if (!all_ranks_fit(all_fit(from, n) && all_fit(into, n), comm, waiter)) {
    if (replaced) return alltoallv_replace(receive, into, comm, waiter);
    Messages messages(comm, waiter);
    messages.receive_blocks(receive, into, nobody);
    messages.send_blocks(send, from, nobody);
    return messages.wait();
  }
  const Kept<int> out = numbers<int>(from.counts, n);
  const Kept<int> out_at = numbers<int>(replaced ? nullptr : send_displacements, n);
  const Kept<int> in = numbers<int>(counts, n);
  const Kept<int> in_at = numbers<int>(displacements, n);
  perform(waiter, "MPI_Alltoallv", call.alltoallv, call.ialltoallv, send, out.data(), out_at.data(),
          send_type.value, receive, in.data(), in_at.data(), type.value, comm.value);
}

}  // namespace ropewalk::mpi::fallback
