// The part of a communicator that executes its collectives: for one rank alone, by the engine of
// one node, by the hierarchy of several nodes, or by MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "collectives/blocks.hpp"
#include "collectives/operation.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::collectives {

class Engine;
namespace nodes {
class Nodes;
}

// Used by one thread at a time.
class Backend {
 public:
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // ---- the calls, which all ranks make alike. Arguments have been checked, and in place is
  // send == receive.

  virtual void barrier() = 0;
  // root -1: every rank gets the result.
  virtual void reduce(const void* send, void* receive, std::size_t count, const Operation&,
                      int root) = 0;
  virtual void scan(const void* send, void* receive, std::size_t count, const Operation&,
                    bool exclusive) = 0;
  virtual void reduce_scatter(const void* send, void* receive, const std::size_t* counts,
                              const Operation&) = 0;
  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;
  // `send` is this rank's block, of as many bytes as the blocks say.
  virtual void allgather(const void* send, void* receive, const Blocks&) = 0;
  // Blocks are the root's; on other ranks they are looked at only where they are equal.
  virtual void gather(const void* send, std::size_t bytes, void* receive, const Blocks&,
                      int root) = 0;
  // `receive` is null at a root whose block stays where it is.
  virtual void scatter(const void* send, const Blocks&, void* receive, std::size_t bytes,
                       int root) = 0;
  virtual void alltoall(const void* send, void* receive, std::size_t bytes_each) = 0;
  virtual void alltoallv(const void* send, const Blocks& sends, void* receive,
                         const Blocks& receives) = 0;

  // ---- what it is

  virtual int nodes() const noexcept = 0;  // that the ranks are on; 0: calls go to MPI
  virtual Path path() const noexcept = 0;  // of the last call
  // What serves this node's ranks; null for one rank alone, and where calls go to MPI.
  virtual Engine* engine() noexcept { return nullptr; }
  // What serves ranks on several nodes; null for others.
  virtual nodes::Nodes* hierarchy() noexcept { return nullptr; }

  // ---- a rank that cannot make a call: the others get an error, and do not wait

  // How many calls this rank has begun. Every call asks before it begins, so this is no virtual
  // function but a look at the number that the backend counts in.
  std::uint64_t calls() const noexcept { return begun_ != nullptr ? *begun_ : 0; }
  // Instead of the next call.
  virtual void refuse(const char* /*message*/) {}
  // Instead of all calls to come.
  virtual void leave_for_good() noexcept {}
  // After an exception in a call: does what the others still wait for. `before`: calls() when the
  // call was begun.
  virtual void rescue(std::uint64_t /*before*/) noexcept {}

 protected:
  Backend() = default;
  explicit Backend(const std::uint64_t& begun) noexcept : begun_(&begun) {}

 private:
  const std::uint64_t* begun_ = nullptr;  // null where no rank waits for another
};

struct BackendFacts {
  std::string reason;         // why calls go to MPI
  std::string attach_reason;  // why private memory is not attached
};
// Collective. `threads` in the options is the number of this rank's threads for large reductions
// over nodes; 0 takes what the environment says.
std::unique_ptr<Backend> make_backend(mpi::Comm, const CollectivesOptions&, BackendFacts&);

}  // namespace ropewalk::collectives
