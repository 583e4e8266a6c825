// Collectives of thread_mpi: all members leave their arguments, the last one does the work.
#include <cstring>

#include "support/thread_mpi_world.hpp"

namespace ropewalk::test {
namespace {

const void* in_place() { return reinterpret_cast<const void*>(abi().in_place); }

std::byte* at(const World& world, void* data, Count elements, Word type) {
  return static_cast<std::byte*>(data) + elements * static_cast<Count>(type_bytes(world, type));
}
const std::byte* at(const World& world, const void* data, Count elements, Word type) {
  return at(world, const_cast<void*>(data), elements, type);
}

void move(const World& world, const void* from, void* into, Count count, Word type) {
  const std::size_t bytes = static_cast<std::size_t>(count) * type_bytes(world, type);
  if (bytes > 0 && from != into) std::memmove(into, from, bytes);
}

std::vector<Count> equal(Count each, std::size_t n) { return std::vector<Count>(n, each); }
std::vector<Count> strides(Count each, std::size_t n) {
  std::vector<Count> offsets(n);
  for (std::size_t i = 0; i < n; ++i) offsets[i] = each * static_cast<Count>(i);
  return offsets;
}
template <class Number>
std::vector<Count> list(const Number* values, std::size_t n) {
  if (values == nullptr) return {};
  return std::vector<Count>(values, values + n);
}

std::size_t members(Word comm) {
  std::size_t n = 0;
  on_communicator("size", comm, [&](Here&, const CommunicatorPointer& c, int) {
    n = c->members.size();
    return 0;
  });
  return n;
}

// ---- what the last one does -----------------------------------------------------------------

int do_nothing(World&, Communicator&, std::vector<Part*>&) { return 0; }

int do_bcast(World& world, Communicator&, std::vector<Part*>& parts) {
  const Part& root = *parts[static_cast<std::size_t>(parts[0]->root)];
  for (Part* p : parts) {
    if (p->root != parts[0]->root) return world.error("MPI_Bcast: different roots");
    move(world, root.receive, p->receive, root.receive_count, root.receive_type);
  }
  return 0;
}

// Every block (i to j) is a copy: gathers, scatters and exchanges differ in who has blocks.
void copy_block(const World& world, const Part& from, std::size_t i, const Part& to,
                std::size_t j) {
  const Count count = to.receive_counts[i];
  void* target = at(world, to.receive, to.receive_offsets[i], to.receive_type);
  if (from.send == in_place()) return;
  const Count offset = from.send_offsets.empty() ? 0 : from.send_offsets[j];
  move(world, at(world, from.send, offset, from.send_type), target, count, to.receive_type);
}

int do_allgather(World& world, Communicator&, std::vector<Part*>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& from = *parts[i];
    // In place, a rank's contribution lies in its own receive buffer.
    const void* source = from.send == in_place()
                             ? at(world, from.receive, from.receive_offsets[i], from.receive_type)
                             : static_cast<const std::byte*>(from.send);
    for (Part* to : parts) {
      move(world, source, at(world, to->receive, to->receive_offsets[i], to->receive_type),
           to->receive_counts[i], to->receive_type);
    }
  }
  return 0;
}

int do_gather(World& world, Communicator&, std::vector<Part*>& parts) {
  const Part& root = *parts[static_cast<std::size_t>(parts[0]->root)];
  for (std::size_t i = 0; i < parts.size(); ++i) copy_block(world, *parts[i], i, root, 0);
  return 0;
}

int do_scatter(World& world, Communicator&, std::vector<Part*>& parts) {
  const Part& root = *parts[static_cast<std::size_t>(parts[0]->root)];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i]->receive == in_place()) continue;
    move(world, at(world, root.send, root.send_offsets[i], root.send_type), parts[i]->receive,
         root.send_counts[i], root.send_type);
  }
  return 0;
}

int do_alltoall(World& world, Communicator&, std::vector<Part*>& parts) {
  // In place, the blocks to send are those that will be overwritten: keep copies of all.
  std::vector<std::vector<std::byte>> copies(parts.size());
  std::vector<Part> senders(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    senders[i] = *parts[i];
    if (senders[i].send != in_place()) continue;
    Count end = 0;
    for (std::size_t j = 0; j < parts.size(); ++j) {
      end = std::max(end, senders[i].receive_offsets[j] + senders[i].receive_counts[j]);
    }
    const auto* first = static_cast<const std::byte*>(senders[i].receive);
    copies[i].assign(first, at(world, first, end, senders[i].receive_type));
    senders[i].send = copies[i].data();
    senders[i].send_offsets = senders[i].receive_offsets;
    senders[i].send_type = senders[i].receive_type;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t j = 0; j < parts.size(); ++j) copy_block(world, senders[i], i, *parts[j], j);
  }
  return 0;
}

// The fold of ranks 0 .. last, in rank order.
bool fold(World& world, const std::vector<Part*>& parts,
          const std::vector<std::vector<std::byte>>& inputs, std::size_t last,
          std::vector<std::byte>& out) {
  const Part& any = *parts[0];
  out = inputs[last];
  for (std::size_t i = last; i-- > 0;) {
    const auto count =
        inputs[i].size() / std::max<std::size_t>(type_bytes(world, any.send_type), 1);
    if (!combine(any.op, any.send_type, inputs[i].data(), out.data(), count)) return false;
  }
  return true;
}

std::vector<std::vector<std::byte>> inputs_of(const World& world, const std::vector<Part*>& parts) {
  std::vector<std::vector<std::byte>> inputs;
  for (const Part* p : parts) {
    const void* source = p->send == in_place() ? p->receive : p->send;
    const std::size_t bytes =
        static_cast<std::size_t>(p->send_count) * type_bytes(world, p->send_type);
    const auto* first = static_cast<const std::byte*>(source);
    inputs.emplace_back(first, first + bytes);
  }
  return inputs;
}

int same_reduction(World& world, const std::vector<Part*>& parts) {
  for (const Part* p : parts) {
    if (p->send_count != parts[0]->send_count || p->send_type != parts[0]->send_type ||
        p->op != parts[0]->op || p->root != parts[0]->root) {
      return world.error("a reduction with different counts, types, operations or roots");
    }
  }
  return 0;
}

// offset(i) and count(i), in elements of the whole result, of what rank i gets; -1: nothing.
template <class Slice>
int reduce_into(World& world, std::vector<Part*>& parts, const Slice& slice) {
  if (const int code = same_reduction(world, parts); code != 0) return code;
  std::vector<std::byte> whole;
  if (!fold(world, parts, inputs_of(world, parts), parts.size() - 1, whole)) {
    return unknown_operation(world);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [offset, count] = slice(i);
    if (count < 0) continue;
    const Word type = parts[i]->send_type;
    move(world, at(world, whole.data(), offset, type), parts[i]->receive, count, type);
  }
  return 0;
}

int do_allreduce(World& world, Communicator&, std::vector<Part*>& parts) {
  const Count all = parts[0]->send_count;
  return reduce_into(world, parts, [&](std::size_t) { return std::pair<Count, Count>(0, all); });
}

int do_reduce(World& world, Communicator&, std::vector<Part*>& parts) {
  const Count all = parts[0]->send_count;
  const auto root = static_cast<std::size_t>(parts[0]->root);
  return reduce_into(world, parts, [&](std::size_t i) {
    return std::pair<Count, Count>(0, i == root ? all : -1);
  });
}

int do_reduce_scatter(World& world, Communicator&, std::vector<Part*>& parts) {
  const std::vector<Count> counts = parts[0]->receive_counts;
  return reduce_into(world, parts, [&](std::size_t i) {
    Count offset = 0;
    for (std::size_t j = 0; j < i; ++j) offset += counts[j];
    return std::pair<Count, Count>(offset, counts[i]);
  });
}

int prefix(World& world, std::vector<Part*>& parts, std::size_t shift) {
  if (const int code = same_reduction(world, parts); code != 0) return code;
  const auto inputs = inputs_of(world, parts);
  for (std::size_t i = shift; i < parts.size(); ++i) {
    std::vector<std::byte> result;
    if (!fold(world, parts, inputs, i - shift, result)) return unknown_operation(world);
    if (!result.empty()) std::memcpy(parts[i]->receive, result.data(), result.size());
  }
  return 0;
}
int do_scan(World& world, Communicator&, std::vector<Part*>& parts) {
  return prefix(world, parts, 0);
}
int do_exscan(World& world, Communicator&, std::vector<Part*>& parts) {
  return prefix(world, parts, 1);
}

// ---- the functions of the table, for int and 64-bit counts -----------------------------------

int fake_barrier(Word comm) {
  Part part;
  return collective("MPI_Barrier", comm, part, &do_nothing);
}

template <class Number>
int fake_bcast(void* data, Number count, Word type, int root, Word comm) {
  Part part;
  part.receive = data;
  part.receive_count = count;
  part.receive_type = type;
  part.root = root;
  return collective("MPI_Bcast", comm, part, &do_bcast);
}

Part block_part(const void* send, Word send_type, void* receive, Word receive_type, int root) {
  Part part;
  part.send = send;
  part.send_type = send_type;
  part.receive = receive;
  part.receive_type = receive_type;
  part.root = root;
  return part;
}

void receive_blocks(Part& part, std::vector<Count> counts, std::vector<Count> offsets) {
  part.receive_counts = std::move(counts);
  part.receive_offsets = std::move(offsets);
}
void send_blocks(Part& part, std::vector<Count> counts, std::vector<Count> offsets) {
  part.send_counts = std::move(counts);
  part.send_offsets = std::move(offsets);
}

template <class Number>
int fake_allgather(const void* send, Number, Word send_type, void* receive, Number count, Word type,
                   Word comm) {
  Part part = block_part(send, send_type, receive, type, 0);
  const std::size_t n = members(comm);
  receive_blocks(part, equal(count, n), strides(count, n));
  return collective("MPI_Allgather", comm, part, &do_allgather);
}

// Displacements are of type int or MPI_Aint, which is as wide as MPI_Count.
template <class Number>
int fake_allgatherv(const void* send, Number, Word send_type, void* receive, const Number* counts,
                    const Number* offsets, Word type, Word comm) {
  Part part = block_part(send, send_type, receive, type, 0);
  const std::size_t n = members(comm);
  receive_blocks(part, list(counts, n), list(offsets, n));
  return collective("MPI_Allgatherv", comm, part, &do_allgather);
}

template <class Number>
int fake_gather(const void* send, Number, Word send_type, void* receive, Number count, Word type,
                int root, Word comm) {
  Part part = block_part(send, send_type, receive, type, root);
  const std::size_t n = members(comm);
  receive_blocks(part, equal(count, n), strides(count, n));
  return collective("MPI_Gather", comm, part, &do_gather);
}

template <class Number>
int fake_gatherv(const void* send, Number, Word send_type, void* receive, const Number* counts,
                 const Number* offsets, Word type, int root, Word comm) {
  Part part = block_part(send, send_type, receive, type, root);
  const std::size_t n = members(comm);
  receive_blocks(part, list(counts, n), list(offsets, n));
  return collective("MPI_Gatherv", comm, part, &do_gather);
}

template <class Number>
int fake_scatter(const void* send, Number count, Word send_type, void* receive, Number, Word type,
                 int root, Word comm) {
  Part part = block_part(send, send_type, receive, type, root);
  const std::size_t n = members(comm);
  send_blocks(part, equal(count, n), strides(count, n));
  return collective("MPI_Scatter", comm, part, &do_scatter);
}

template <class Number>
int fake_scatterv(const void* send, const Number* counts, const Number* offsets, Word send_type,
                  void* receive, Number, Word type, int root, Word comm) {
  Part part = block_part(send, send_type, receive, type, root);
  const std::size_t n = members(comm);
  send_blocks(part, list(counts, n), list(offsets, n));
  return collective("MPI_Scatterv", comm, part, &do_scatter);
}

template <class Number>
int fake_alltoall(const void* send, Number send_count, Word send_type, void* receive, Number count,
                  Word type, Word comm) {
  Part part = block_part(send, send_type, receive, type, 0);
  const std::size_t n = members(comm);
  send_blocks(part, equal(send_count, n), strides(send_count, n));
  receive_blocks(part, equal(count, n), strides(count, n));
  return collective("MPI_Alltoall", comm, part, &do_alltoall);
}

template <class Number>
int fake_alltoallv(const void* send, const Number* send_counts, const Number* send_offsets,
                   Word send_type, void* receive, const Number* counts, const Number* offsets,
                   Word type, Word comm) {
  Part part = block_part(send, send_type, receive, type, 0);
  const std::size_t n = members(comm);
  send_blocks(part, list(send_counts, n), list(send_offsets, n));
  receive_blocks(part, list(counts, n), list(offsets, n));
  return collective("MPI_Alltoallv", comm, part, &do_alltoall);
}

Part reduction(const void* send, void* receive, Count count, Word type, Word op, int root) {
  Part part = block_part(send, type, receive, type, root);
  part.send_count = count;
  part.op = op;
  return part;
}

template <class Number>
int fake_reduce(const void* send, void* receive, Number count, Word type, Word op, int root,
                Word comm) {
  Part part = reduction(send, receive, count, type, op, root);
  return collective("MPI_Reduce", comm, part, &do_reduce);
}

template <class Number>
int fake_allreduce(const void* send, void* receive, Number count, Word type, Word op, Word comm) {
  Part part = reduction(send, receive, count, type, op, 0);
  return collective("MPI_Allreduce", comm, part, &do_allreduce);
}

template <class Number>
int fake_reduce_scatter(const void* send, void* receive, const Number* counts, Word type, Word op,
                        Word comm) {
  Part part = reduction(send, receive, 0, type, op, 0);
  part.receive_counts = list(counts, members(comm));
  for (const Count count : part.receive_counts) part.send_count += count;
  return collective("MPI_Reduce_scatter", comm, part, &do_reduce_scatter);
}

template <class Number>
int fake_reduce_scatter_block(const void* send, void* receive, Number count, Word type, Word op,
                              Word comm) {
  const std::size_t n = members(comm);
  Part part = reduction(send, receive, count * static_cast<Count>(n), type, op, 0);
  part.receive_counts = equal(count, n);
  return collective("MPI_Reduce_scatter_block", comm, part, &do_reduce_scatter);
}

template <class Number>
int fake_scan(const void* send, void* receive, Number count, Word type, Word op, Word comm) {
  Part part = reduction(send, receive, count, type, op, 0);
  return collective("MPI_Scan", comm, part, &do_scan);
}

template <class Number>
int fake_exscan(const void* send, void* receive, Number count, Word type, Word op, Word comm) {
  Part part = reduction(send, receive, count, type, op, 0);
  return collective("MPI_Exscan", comm, part, &do_exscan);
}

}  // namespace

int collective(const char* function, Word comm, Part& part, const Execute& execute) {
  if (Word* request = request_wanted()) {
    return start_collective(function, comm, part, execute, request);
  }
  return on_communicator(function, comm, [&](Here& here, const CommunicatorPointer& c, int me) {
    World& world = here.world;
    if (c->arrived == 0) c->collective = function;
    if (c->collective != function) {
      world.stop("rank " + std::to_string(me) + " calls " + function + " while others call " +
                 c->collective);
      return world.stopped_code;
    }
    Part*& mine = c->parts[static_cast<std::size_t>(me)];
    if (mine != nullptr) return world.error("two threads of a rank in one collective");
    mine = &part;
    if (++c->arrived == c->parts.size()) {
      c->result = execute(world, *c, c->parts);
      c->parts.assign(c->parts.size(), nullptr);
      c->arrived = 0;
      ++c->generation;
      world.changed();
      return c->result;
    }
    const std::uint64_t generation = c->generation;
    const int code = here.block([&] { return c->generation != generation; });
    return code != 0 ? code : c->result;
  });
}

void fill_collectives(mpi::Functions& call) {
  call.barrier = &fake_barrier;
  call.bcast = &fake_bcast<int>;
  call.allgather = &fake_allgather<int>;
  call.allgatherv = &fake_allgatherv<int>;
  call.gather = &fake_gather<int>;
  call.gatherv = &fake_gatherv<int>;
  call.scatter = &fake_scatter<int>;
  call.scatterv = &fake_scatterv<int>;
  call.alltoall = &fake_alltoall<int>;
  call.alltoallv = &fake_alltoallv<int>;
  call.reduce = &fake_reduce<int>;
  call.allreduce = &fake_allreduce<int>;
  call.reduce_scatter = &fake_reduce_scatter<int>;
  call.reduce_scatter_block = &fake_reduce_scatter_block<int>;
  call.scan = &fake_scan<int>;
  call.exscan = &fake_exscan<int>;
}

void fill_large_collectives(mpi::Functions& call) {
  call.bcast_c = &fake_bcast<Count>;
  call.allgather_c = &fake_allgather<Count>;
  call.allgatherv_c = &fake_allgatherv<Count>;
  call.gather_c = &fake_gather<Count>;
  call.gatherv_c = &fake_gatherv<Count>;
  call.scatter_c = &fake_scatter<Count>;
  call.scatterv_c = &fake_scatterv<Count>;
  call.alltoall_c = &fake_alltoall<Count>;
  call.alltoallv_c = &fake_alltoallv<Count>;
  call.reduce_c = &fake_reduce<Count>;
  call.allreduce_c = &fake_allreduce<Count>;
  call.reduce_scatter_c = &fake_reduce_scatter<Count>;
  call.reduce_scatter_block_c = &fake_reduce_scatter_block<Count>;
  call.scan_c = &fake_scan<Count>;
  call.exscan_c = &fake_exscan<Count>;
}

}  // namespace ropewalk::test
