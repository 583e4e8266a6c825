// Cartesian halo exchange: faces as lattice codes pass them, or ghost layers of N-d fields.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "ropewalk/endpoint.hpp"

namespace ropewalk {

// A grid of ranks, 1 to 6 dimensions. Ranks are numbered row-major: the last dimension varies
// fastest.
class RW_EXPORT CartesianGrid {
 public:
  static constexpr int max_dimensions = 6;

  // Collective: all ranks must pass the same, and the product of extents must be the number of
  // ranks; Error(argument) on every rank otherwise.
  CartesianGrid(Communicator, std::vector<int> extents, std::vector<bool> periodic);

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
  int rank_ = 0;
  int size_ = 1;
};

// (a) Faces: one contiguous packet a direction, as lattice codes pass them. Direction index of
// dimension d: 2d is towards +, 2d+1 towards -. receive[2d] holds what the neighbour at + sent
// towards -, i.e. its send[2d+1]. Directions with zero bytes, or beyond an open boundary, are left
// out.
struct FacePackets {
  std::vector<const void*> send;   // 2 x dimensions
  std::vector<void*> receive;      // 2 x dimensions
  std::vector<std::size_t> bytes;  // 2 x dimensions, equal on both sides of a face
};

// (b) Buffers: faces in memory that the halo owns, so that those of ranks on one node need not be
// copied. For each exchange the caller writes send_buffer(), by gathering or projecting its field,
// exchanges, and reads receive_buffer(). Directions are those above.
struct HaloBuffers {
  std::vector<std::size_t> bytes;  // 2 x dimensions, equal on both sides of a face
};

// (c) A field: an N-d array, row-major, with ghost layers on both sides of each dimension.
struct Field {
  void* data = nullptr;           // first byte of the array, ghosts included
  std::size_t element_bytes = 0;  // of a trivially copyable type
  // Extents without ghosts, at least the ghost width where the field is sent.
  std::vector<std::size_t> interior;
  std::vector<std::size_t> ghost;  // width per dimension, both sides; 0 leaves a dimension alone
};

enum class Corners { no, yes };  // yes: edges and corners too, as box stencils need

struct HaloOptions {
  Strategy strategy = Strategy::automatic;
  Corners corners = Corners::no;
};

// A halo is made once; start, test, wait and exchange allocate nothing. Between start and wait the
// caller may read the interior and must not write what is being sent, nor touch the ghosts.
//
// Messages: one to each neighbour, or for Corners::yes to each of up to 3^N-1, with all fields in
// it; packed in buffers on the process arena, except for a single field whose face is one run of
// bytes, which is sent and received in place, as face packets are. A rank that is its own neighbour
// copies. `sequential` goes one direction after the other, as in Boyle et al. 2017, section III.
// `threaded` gives each direction a lane (several share one where lanes are fewer); it needs
// endpoints with comm threads. `automatic` runs `concurrent`, `threaded` and `direct`, as far as
// they are possible here, a few times when the halo is made, into memory of its own, and all ranks
// take the one whose slowest rank was fastest. Several halos may be under way on one EndpointSet;
// every rank must wait for them in the same order.
//
// `direct`: each face is copied from the memory of one rank to that of the other, strided on both
// sides; nothing is packed or sent. Either rank does it, in test() or wait(). Needs all ranks of
// the grid on one node, and fields or packets in the process arena (Buffer, Allocator, rw_alloc):
// Error(unsupported) on every rank where one rank's are not. A rank that dies is Error(peer_dead)
// on those that wait for it.
//
// `put`: for HaloBuffers alone, all ranks on one node. send_buffer() is memory of the neighbour,
// where it reads what it received: no face is copied, and an exchange is a store and a load a
// neighbour, whatever the faces hold. Each face has two places that take turns: while a neighbour
// still reads those of one exchange, the next are written. There `automatic` measures each strategy
// with faces gathered before and read after the exchange. Non-temporal stores into send_buffer()
// are several times faster than plain ones on some machines (docs/explanation/endpoints.md); other
// threads than the one that calls start() must fence theirs.
//
// wait() returns once all neighbours have called start(), whatever else they wait for by then; but
// with `sequential` they must be in test() or wait() too.
class RW_EXPORT Halo {
 public:
  // Collective over grid and endpoints (same communicator). Throws Error(argument) on every rank
  // for unequal faces, zero extents, widths above the interior, null pointers, options or fields
  // that differ between ranks, and `threaded` on endpoints without comm threads.
  Halo(const CartesianGrid&, EndpointSet&, const FacePackets&, const HaloOptions& = {});
  Halo(const CartesianGrid&, EndpointSet&, const std::vector<Field>&, const HaloOptions& = {});
  // Error(memory) on every rank where one has no room for twice its faces.
  Halo(const CartesianGrid&, EndpointSet&, const HaloBuffers&, const HaloOptions& = {});
  Halo(Halo&&) noexcept;
  Halo& operator=(Halo&&) noexcept;
  ~Halo();  // waits for what was started; its ghosts are then not to be relied on

  void start();  // Error(argument) while an exchange is under way
  bool test();   // true when all ghosts are filled, or nothing was started
  void wait();   // returns at once where nothing was started
  void exchange() {
    start();
    wait();
  }
  // For threads that drive the messages between them and then do something else (schedule.hpp):
  // lanes 0 to lanes() - 1, each once by one of the threads, which returns when its messages are
  // done. One lane, which is exchange(), where the strategy is `threaded` or `direct` or fields are
  // packed.
  void exchange_lane(int lane);
  int lanes() const noexcept;
  // The buffers of a halo that was made of HaloBuffers; null in a direction without a face, and in
  // other halos. They are aligned to 128 bytes and may change with every exchange: ask again for
  // each. With `put`, send_buffer() is null once an exchange has failed: neighbours may still be
  // reading what it was.
  void* send_buffer(int direction) const noexcept;  // of the next exchange: not before wait()
  // Of the exchange that was last started: to be read from its wait() to the next start().
  const void* receive_buffer(int direction) const noexcept;
  // Where the next exchange will put what comes: known before it is started, read after its wait().
  const void* next_receive_buffer(int direction) const noexcept;
  Strategy strategy() const noexcept;       // chosen, when it was automatic
  std::size_t send_bytes() const noexcept;  // of this rank to other ranks, in one exchange

 private:
  struct State;
  template <class Request>
  static std::unique_ptr<State> make(const CartesianGrid&, Request&&);
  std::unique_ptr<State> state_;
};

}  // namespace ropewalk
