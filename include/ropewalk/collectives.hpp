// Collectives beside any MPI: inside a node straight between the ranks' buffers (Hashmi et al.
// 2018), over several nodes by messages that the ranks of each node share out among themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include "ropewalk/communicator.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/export.hpp"
#include "ropewalk/types.hpp"

namespace ropewalk {

// Passed for a send buffer (for the receive buffer of a scatter's root): the data is already where
// the result goes, as MPI_IN_PLACE says for each collective. MPI's own MPI_IN_PLACE is understood
// as well.
inline void* const in_place = reinterpret_cast<void*>(std::intptr_t{-1});

// How the bytes of the last collective went; for benches and tests.
enum class Path {
  none,     // nothing to do: one rank, or no data
  inlined,  // beside the flags, in the slots
  mapped,   // straight between the buffers of the ranks
  cma,      // read from private buffers by process_vm_readv
  staged,   // copied through staging areas in the arenas
  nodes,    // inside each node by one of these, between nodes by messages
  mpi       // done by the MPI underneath
};
RW_EXPORT const char* name(Path);

// The registration cache of this process: which private memory of other ranks is attached here.
struct RegistrationCounts {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;     // attached anew
  std::uint64_t evictions = 0;  // detached to make room
  std::uint64_t entries = 0;    // attached now
};

namespace collectives {
class Worker;
}

// A nonblocking collective under way. Destruction waits for it.
class RW_EXPORT CollectiveRequest {
 public:
  CollectiveRequest() = default;
  CollectiveRequest(CollectiveRequest&&) noexcept = default;
  CollectiveRequest& operator=(CollectiveRequest&&) noexcept = default;
  ~CollectiveRequest();

  bool test();  // true when complete; rethrows what the collective met
  void wait();

 private:
  friend class NodeCommunicator;
  friend class collectives::Worker;
  struct State;
  std::shared_ptr<State> state_;
};

struct NodeCommunicatorOptions {
  // Of this rank, for the arithmetic of large reductions over several nodes, the caller's included;
  // 0: ROPEWALK_REDUCTION_THREADS, or as many as it has cores for itself, up to 8. The result does
  // not depend on it. docs/explanation/nodes.md, "Threads".
  int threads = 0;
};

// Collective over an MPI communicator; the MPI communicator must outlive it. As in MPI, all ranks
// call the same collectives in the same order, and one thread at a time uses a communicator. Ranks
// may be on one node or on several; over several nodes, MPI makes those calls that it makes faster,
// and scan and exscan (docs/explanation/nodes.md). Where ranks of a node cannot map each other's
// memory, every call goes to MPI.
//
// On one node sums are combined in the order of ranks (where it has several outermost caches:
// within each, then one after the other), over several nodes first inside each node. So all ranks
// get the same bits, in every run that places its ranks alike; a sum that MPI makes has what MPI
// promises.
//
// Errors: Error(argument) on every rank when ranks disagree on collective, count, type, operation
// or root; Error(peer_dead) when a rank has died. Where an exception takes a rank
// through the end of its communicator, the others get an error that says so in their next call.
class RW_EXPORT NodeCommunicator {
 public:
  explicit NodeCommunicator(Communicator, const NodeCommunicatorOptions& = {});
  ~NodeCommunicator();
  NodeCommunicator(NodeCommunicator&&) noexcept;
  NodeCommunicator& operator=(NodeCommunicator&&) noexcept;

  int rank() const noexcept;
  int size() const noexcept;
  bool direct() const noexcept;  // true: ropewalk serves it; false: every call goes to MPI
  int nodes() const noexcept;    // number of nodes that the ranks are on; 0 where it is not direct
  const std::string& reason() const noexcept;  // why every call goes to MPI; empty where none must
  Path last_path() const noexcept;

  // True when all ranks attach private buffers of 16 KiB and more of all others, as the kernel
  // module XPMEM lets them: such buffers take the mapped path as those in the arenas do.
  bool attaches() const noexcept;
  const std::string& attach_reason() const noexcept;  // why they do not
  // Of this rank in the last large reduction over several nodes; 1 where there was none.
  int reduction_threads() const noexcept;
  // Of this process, over all its communicators; zeros where nothing is attached.
  RegistrationCounts registrations() const;

  void barrier();

  // Reductions: `count` elements a rank.
  void allreduce(const void* send, void* receive, std::size_t count, ElementType, ReductionOp);
  void reduce(const void* send, void* receive, std::size_t count, ElementType, ReductionOp,
              int root);
  void scan(const void* send, void* receive, std::size_t count, ElementType, ReductionOp);
  void exscan(const void* send, void* receive, std::size_t count, ElementType, ReductionOp);
  // counts[r] elements of the result go to rank r; the same on all ranks.
  void reduce_scatter(const void* send, void* receive, const std::size_t* counts, ElementType,
                      ReductionOp);
  void reduce_scatter_block(const void* send, void* receive, std::size_t count, ElementType,
                            ReductionOp);

  // Movements, in bytes. The forms ending in v take one count and displacement (bytes) a rank.
  void broadcast(void* data, std::size_t bytes, int root);
  void allgather(const void* send, void* receive, std::size_t bytes_each);
  void allgatherv(const void* send, std::size_t send_bytes, void* receive,
                  const std::size_t* counts, const std::size_t* displacements);
  void gather(const void* send, void* receive, std::size_t bytes_each, int root);
  void gatherv(const void* send, std::size_t send_bytes, void* receive, const std::size_t* counts,
               const std::size_t* displacements, int root);
  void scatter(const void* send, void* receive, std::size_t bytes_each, int root);
  void scatterv(const void* send, const std::size_t* counts, const std::size_t* displacements,
                void* receive, std::size_t receive_bytes, int root);
  void alltoall(const void* send, void* receive, std::size_t bytes_each);
  void alltoallv(const void* send, const std::size_t* send_counts,
                 const std::size_t* send_displacements, void* receive,
                 const std::size_t* receive_counts, const std::size_t* receive_displacements);

  // Nonblocking forms run one after the other on a thread of the communicator; they need
  // MPI_THREAD_MULTIPLE. Buffers belong to the call until it is complete.
  CollectiveRequest start(std::function<void(NodeCommunicator&)> call);  // any of the above
  CollectiveRequest start_barrier();
  CollectiveRequest start_allreduce(const void* send, void* receive, std::size_t count, ElementType,
                                    ReductionOp);
  CollectiveRequest start_reduce(const void* send, void* receive, std::size_t count, ElementType,
                                 ReductionOp, int root);
  CollectiveRequest start_broadcast(void* data, std::size_t bytes, int root);
  CollectiveRequest start_allgather(const void* send, void* receive, std::size_t bytes_each);
  CollectiveRequest start_alltoall(const void* send, void* receive, std::size_t bytes_each);
  CollectiveRequest start_reduce_scatter_block(const void* send, void* receive, std::size_t count,
                                               ElementType, ReductionOp);

  struct State;
  State& state() noexcept { return *state_; }  // for the layers inside ropewalk

 private:
  std::unique_ptr<State> state_;
};

// The ElementType of a C++ type: element_type<float>() and so on.
template <class T>
constexpr ElementType element_type() {
  if constexpr (std::is_same_v<T, bool>) {
    return ElementType::boolean;
  } else if constexpr (std::is_same_v<T, std::byte>) {
    return ElementType::byte;
  } else if constexpr (std::is_same_v<T, float>) {
    return ElementType::float32;
  } else if constexpr (std::is_same_v<T, double>) {
    return ElementType::float64;
  } else if constexpr (std::is_same_v<T, long double>) {
    return ElementType::long_double;
  } else {
    static_assert(std::is_integral_v<T>, "this type has no ElementType");
    constexpr int width = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return static_cast<ElementType>(2 * width + (std::is_unsigned_v<T> ? 1 : 0));
  }
}

}  // namespace ropewalk
