// Collectives that work beside any MPI. Inside a node, data goes straight between the ranks'
// buffers (Hashmi et al. 2018). Between nodes it goes by messages, which the ranks of a node share
// out among themselves.
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

// A caller passes it for a send buffer (the root of a scatter, for its receive buffer) when the
// data is already where the result goes, as the MPI standard says of MPI_IN_PLACE for each
// collective. MPI's own MPI_IN_PLACE is understood as well.
inline void* const in_place = reinterpret_cast<void*>(std::intptr_t{-1});

// How the bytes of the last collective went; for benches and tests.
enum class Path {
  none,     // nothing to do: one rank, or no data
  inlined,  // in the slots, beside the flags
  mapped,   // straight between the buffers of the ranks
  cma,      // read from private buffers by process_vm_readv
  staged,   // copied through staging areas in the arenas
  nodes,    // inside each node by one of the above, between nodes by messages
  mpi       // done by the MPI underneath
};
RW_EXPORT const char* name(Path);

// How often the registration cache of this process, which holds the private memory of other ranks
// that is attached here, had what a call needed.
struct RegistrationCounts {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;     // attached by the call
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

  bool test();  // true when it is complete; rethrows the error of the collective
  void wait();

 private:
  friend class Collectives;
  friend class collectives::Worker;
  struct State;
  std::shared_ptr<State> state_;
};

struct CollectivesOptions {
  // How many threads of this rank, the caller's included, do the arithmetic of large reductions
  // over several nodes. 0: ROPEWALK_REDUCTION_THREADS, or one for each core that the rank has for
  // itself, up to 8. The result does not depend on it. See docs/explanation/nodes.md, "Threads".
  int threads = 0;
  // How many seconds a rank waits in a call for others that do not come to it; 0: for as long as
  // they live. Then it throws Error(peer_dead), which names them on one node, and the communicator
  // is of no use any more. The same on all ranks.
  int timeout_s = 0;
};

// The collectives of the ranks of an MPI communicator, which must outlive this object. Construction
// and destruction are collective. As in MPI, all ranks call the same collectives in the same order,
// and one thread at a time makes calls.
//
// The ranks may be on one node or on several. Over several nodes, scan and exscan go to MPI, and so
// do the calls that MPI makes faster (docs/explanation/nodes.md), where there is an MPI. Where a
// node's ranks cannot map each other's memory, every call goes to MPI.
//
// On one node, sums are combined in the order of ranks; where the node has several outermost
// caches, first among the ranks of each. Over several nodes, they are combined inside each node
// first. So all ranks get the same bits, in every run that places its ranks alike. A sum that goes
// to MPI has the properties that MPI promises.
//
// Errors: Error(argument) on every rank when ranks disagree on collective, count, type, operation
// or root; Error(peer_dead) when a rank has died. When an exception makes a rank destroy this
// object early, the next call of the others throws an error that says so.
class RW_EXPORT Collectives {
 public:
  explicit Collectives(Communicator, const CollectivesOptions& = {});
  ~Collectives();
  Collectives(Collectives&&) noexcept;
  Collectives& operator=(Collectives&&) noexcept;

  int rank() const noexcept;
  int size() const noexcept;
  bool direct() const noexcept;  // true: ropewalk serves the calls; false: all of them go to MPI
  int nodes() const noexcept;    // on how many nodes the ranks are; 0 unless direct()
  const std::string& reason() const noexcept;  // why all calls go to MPI; empty if direct()
  Path last_path() const noexcept;

  // Returns true when all ranks can attach private buffers of 16 KiB and more of all others, which
  // takes the kernel module XPMEM. Such buffers then go by the mapped path, as those in the arenas
  // do.
  bool attaches() const noexcept;
  const std::string& attach_reason() const noexcept;  // why they cannot
  // How many threads of this rank did the last large reduction over several nodes; 1 where there
  // was none.
  int reduction_threads() const noexcept;
  // The counts of this process, over all its communicators; zeros where nothing is attached.
  RegistrationCounts registrations() const;

  void barrier();

  // Reductions of `count` elements of each rank.
  void allreduce(const void* send, void* receive, std::size_t count, ElementType, ReductionOp);
  void reduce(const void* send, void* receive, std::size_t count, ElementType, ReductionOp,
              int root);
  void scan(const void* send, void* receive, std::size_t count, ElementType, ReductionOp);
  void exscan(const void* send, void* receive, std::size_t count, ElementType, ReductionOp);
  // Rank r gets counts[r] elements of the result; all ranks pass the same counts.
  void reduce_scatter(const void* send, void* receive, const std::size_t* counts, ElementType,
                      ReductionOp);
  void reduce_scatter_block(const void* send, void* receive, std::size_t count, ElementType,
                            ReductionOp);

  // Movements of data, counted in bytes. The forms ending in v take a count and a displacement, in
  // bytes, for each rank.
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

  // The nonblocking forms run one after the other on a thread of this object, and need
  // MPI_THREAD_MULTIPLE. The buffers belong to the call until it is complete.
  CollectiveRequest start(std::function<void(Collectives&)> call);  // any of the above
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
