// Cartesian halo exchange: faces as lattice codes pass them, or ghost layers of N-d fields.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "ropewalk/endpoint.hpp"

namespace ropewalk {

// Which rank stands where on a grid.
enum class RankOrder {
  row_major,  // by number: the last dimension varies fastest
  by_node     // each node has a compact block where that is possible, and in it each cache domain,
              // so that fewer faces leave them
};

// A grid of ranks, 1 to 6 dimensions.
class RW_EXPORT CartesianGrid {
 public:
  static constexpr int max_dimensions = 6;

  // Collective: all ranks must pass the same, and the product of extents must be the number of
  // ranks; Error(argument) on every rank otherwise. Whatever the order, ranks keep their numbers in
  // the communicator. RankOrder::by_node gives them the cells of the grid so that, of row-major
  // order, row-major order node by node, and equal blocks of nodes, the fewest links between
  // neighbours join different nodes; and of those, with equal blocks of the cache domains in a node
  // (ranks that share the outermost cache; ROPEWALK_DOMAINS), the fewest join different domains.
  CartesianGrid(Communicator, std::vector<int> extents, std::vector<bool> periodic,
                RankOrder order = RankOrder::row_major);

  int dimensions() const noexcept { return static_cast<int>(extents_.size()); }
  const std::vector<int>& extents() const noexcept { return extents_; }
  const std::vector<bool>& periodic() const noexcept { return periodic_; }
  const std::vector<int>& coordinates() const noexcept { return coordinates_; }
  Communicator communicator() const noexcept { return communicator_; }
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // Rank at coordinates + offset, or -1 beyond an open boundary.
  int neighbour(const std::vector<int>& offset) const;
  int neighbour(int dimension, int direction) const;  // direction +1 or -1

 private:
  Communicator communicator_;
  std::vector<int> extents_;
  std::vector<bool> periodic_;
  std::vector<int> coordinates_;
  std::vector<int> ranks_;  // of each cell, row-major; empty: their numbers
  int rank_ = 0;
  int size_ = 1;
};

// (a) Packets: one contiguous face for each direction, as lattice codes pass them. Direction 2d is
// towards + of dimension d, direction 2d+1 towards -. receive[2d] holds what the neighbour at +
// sent towards -, which is its send[2d+1]. Directions with zero bytes, or beyond an open boundary,
// are left out.
struct FacePackets {
  std::vector<const void*> send;   // 2 x dimensions
  std::vector<void*> receive;      // 2 x dimensions
  std::vector<std::size_t> bytes;  // 2 x dimensions, equal on both sides of a face
};

// (b) Buffers: faces in memory that the halo owns, so that ranks of one node need not copy them.
// For each exchange the caller writes send_buffer(), by gathering or projecting its field,
// exchanges, and reads receive_buffer(). The directions are those above.
struct HaloBuffers {
  std::vector<std::size_t> bytes;  // 2 x dimensions, equal on both sides of a face
};

// (c) A field: an N-d array, row-major, with ghost layers on both sides of each dimension.
struct Field {
  void* data = nullptr;           // first byte of the array, ghosts included
  std::size_t element_bytes = 0;  // of a trivially copyable type
  // Extents without ghosts; at least the ghost width in each dimension that is exchanged.
  std::vector<std::size_t> interior;
  std::vector<std::size_t> ghost;  // width on both sides of each dimension; 0: not exchanged
};

enum class Corners { no, yes };  // yes: edges and corners too, as box stencils need

struct HaloOptions {
  Strategy strategy = Strategy::automatic;
  Corners corners = Corners::no;
  // 1 to Halo::max_parts: each face is handed over in so many parts (Halo::ready). 0: as a whole,
  // by start().
  int parts = 0;
  // 1 to Halo::max_workers: threads of this rank that share its copies (Halo::start_worker). Each
  // rank may have its own number. Small exchanges are copied by fewer of them
  // (halo.worker_bytes).
  int workers = 1;
};

// An exchange that is made once and repeated; start, test, wait and exchange allocate nothing.
// Between start and wait the caller may read the interior, but must neither write what is being
// sent nor touch the ghosts.
//
// Strategies with messages: one message with all fields goes to each neighbour, with Corners::yes
// to each of up to 3^N-1 neighbours. Faces are packed into buffers in the arena of the process.
// Face packets, and the face of a single field that is one run of bytes, are sent and received in
// place. A rank that is its own neighbour copies. `sequential` exchanges one direction after the
// other, as in Boyle et al. 2017, section III. `threaded` gives each direction a lane (several
// directions share one where there are fewer lanes), and needs endpoints with comm threads.
//
// `direct`: each face is copied from the memory of one rank to that of the other, strided on both
// sides; nothing is packed or sent. Whichever of the two ranks comes first copies, in test() or
// wait(). It is fastest with fields or packets in the arena of the process (Buffer, Allocator,
// rw_alloc). Faces in private memory are attached (XPMEM), copied by the kernel, or staged: packed
// into the arena of their sender, from where their receiver copies. Private memory must stay where
// it is until the halo ends; Error(system) where the kernel does not reach it. When a rank dies,
// those that wait for it throw Error(peer_dead).
//
// `put`: for HaloBuffers alone. send_buffer() is memory of the neighbour, which reads there what it
// received. So no face is copied, and an exchange costs a store and a load for each neighbour,
// however large the faces are. Each face has two places that take turns: one is written for the
// next exchange while the neighbour still reads the other. Non-temporal stores into send_buffer()
// are several times faster than plain ones on some machines (docs/explanation/endpoints.md);
// threads that call neither start() nor start_worker() must fence theirs.
//
// With `direct` and `put`, faces between ranks of different nodes are messages of the same
// exchange, and those between ranks of one node travel as described: any ranks may be on any node.
// The messages leave first, driven by comm threads where these have cores of their own, else by the
// caller in test() and wait(); faces inside the node are copied meanwhile. Error(unsupported) where
// ranks of a node cannot map each other's memory.
//
// `automatic`: when the halo is made, it runs each strategy that is possible here a few times, in
// memory of its own, and all ranks take the one whose slowest rank was fastest. For HaloBuffers the
// measured time contains gathering the faces before the exchange and reading them after it.
//
// With `parts`, threads hand over pieces of a face as they finish them, and neighbours read each as
// soon as it is there (the idea of MPI_Psend_init in MPI-4). They are for HaloBuffers with `put`,
// which `automatic` takes then, on one node: Error(argument) or Error(unsupported) elsewhere. Take
// send_buffer() before start(); from start() on, each part of each face is written and handed over
// by ready(), in any order and by any threads, and then wait() is called.
//
// With `workers`, all threads of a rank pack, unpack and copy: those of a ThreadTeam, or of an
// OpenMP region of the caller. One of them alone, worker 0, calls MPI and deals with neighbours.
// Faces to other nodes are packed and leave first, and those inside the node are copied by all
// while they travel. What the ghosts then hold does not depend on the number of workers. Private
// memory that the kernel copies is copied by worker 0. While `automatic` measures, threads of
// ropewalk's own take the place of the others.
//
//   Halo halo(grid, endpoints, fields, {.workers = omp_get_max_threads()});
//   #pragma omp parallel num_threads(halo.workers())
//   {
//     halo.start_worker(omp_get_thread_num());
//     ... compute what needs no ghosts ...
//     halo.wait_worker(omp_get_thread_num());
//   }
//
// wait() returns once all neighbours have called start(), whatever else they wait for by then; with
// `sequential`, once they are in test() or wait() too. Several halos may be under way on one
// EndpointSet; every rank must wait for them in the same order.
class RW_EXPORT Halo {
 public:
  // Collective over grid and endpoints, which must have the same communicator. Throws
  // Error(argument) on every rank for faces whose two sides differ, zero extents, ghosts wider than
  // the interior, null pointers, options or fields that differ between ranks, and `threaded` on
  // endpoints without comm threads.
  Halo(const CartesianGrid&, EndpointSet&, const FacePackets&, const HaloOptions& = {});
  Halo(const CartesianGrid&, EndpointSet&, const std::vector<Field>&, const HaloOptions& = {});
  // Throws Error(memory) on every rank where one rank has no room for twice its faces.
  Halo(const CartesianGrid&, EndpointSet&, const HaloBuffers&, const HaloOptions& = {});
  Halo(Halo&&) noexcept;
  Halo& operator=(Halo&&) noexcept;
  ~Halo();  // waits for an exchange under way, whose ghosts are then undefined

  void start();  // Error(argument) while an exchange is under way
  bool test();   // true when all ghosts are filled, or no exchange was started
  // Returns at once where no exchange was started. Error(argument) while a part is not ready(); the
  // exchange is still under way then.
  void wait();
  void exchange();  // start() and wait(), and with parts every part is handed over between
  // These two are for a halo with parts. Part p of a face of n bytes with P parts begins at byte
  // p * n / P, in exact arithmetic, rounded down, on both sides.
  //
  // The calling thread has written this part for the exchange under way: the neighbour may read it.
  // Several threads may call it at once, for different parts. Throws Error(argument) where no
  // exchange is under way, where there is no such part or no face in this direction, and where the
  // part was handed over before in this exchange. Two threads that hand over the same part at the
  // same moment are not always found out.
  void ready(int direction, int part);
  // True when this part of receive_buffer(direction) may be read: its sender has handed it over in
  // the exchange that was started last. Any thread may ask, between start() and the next start().
  // It only looks: that a neighbour has died or given up is thrown by test() and wait().
  bool arrived(int direction, int part) const;
  static constexpr int max_parts = 4096;
  int parts() const noexcept;  // 0 where faces are handed over as a whole
  // start() and wait() for all workers together: each of them makes both calls, with its number
  // from 0 to workers() - 1. A call is a barrier for what is exchanged, too: what a worker wrote
  // before start_worker() is sent, and all ghosts are filled when wait_worker() returns. Workers
  // that have called it help with the copies until then; worker 0 begins to wait without the
  // others, and may call test() between the two. All throw what worker 0 throws; Error(argument)
  // for a number that is no worker's, on its thread alone. Where start(), wait() or exchange() is
  // called instead, the calling thread makes all copies.
  void start_worker(int worker);
  void wait_worker(int worker);
  int workers() const noexcept;
  static constexpr int max_workers = 4096;
  // For threads that share out the messages and then do something else (schedule.hpp): for each
  // lane from 0 to lanes() - 1, one of them makes one call, which returns when the messages of that
  // lane are complete. Where the strategy is `threaded`, `direct` or `put`, or fields are packed,
  // there is one lane, and the call is exchange().
  void exchange_lane(int lane);
  int lanes() const noexcept;
  // Returns the buffers of a halo that was made from HaloBuffers, aligned to 128 bytes; null in a
  // direction without a face, and in other halos. They may change with every exchange: ask again
  // for each. With `put`, send_buffer() is null after an exchange has failed, since neighbours may
  // still be reading there.
  void* send_buffer(int direction) const noexcept;  // of the next exchange; valid after wait()
  // Returns that of the exchange that was started last; it is to be read between its wait() and the
  // next start().
  const void* receive_buffer(int direction) const noexcept;
  // Where the next exchange will put what it receives: known before its start(), to be read after
  // its wait().
  const void* next_receive_buffer(int direction) const noexcept;
  Strategy strategy() const noexcept;       // what `automatic` has chosen, or what was asked for
  std::size_t send_bytes() const noexcept;  // from this rank to others in one exchange
  // Returns the part of these that goes to ranks of other nodes, over this node's wire.
  std::size_t wire_bytes() const noexcept;

 private:
  struct State;
  template <class Request>
  static std::unique_ptr<State> make(const CartesianGrid&, Request&&);
  std::unique_ptr<State> state_;
};

}  // namespace ropewalk
