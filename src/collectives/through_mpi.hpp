// Collectives that are MPI's own: all of communicators that ropewalk cannot serve, and those that
// the nodes leave to it.
#pragma once

#include "collectives/backend.hpp"

namespace ropewalk::collectives {

class ThroughMpi final : public Backend {
 public:
  // The calls go to MPI on the caller's communicator.
  ThroughMpi(mpi::Comm comm, int rank) noexcept : comm_(comm), rank_(rank) {}
  // As a call of the nodes, in its turn among those that they serve.
  explicit ThroughMpi(nodes::Nodes&) noexcept;

  void barrier() override;
  void reduce(const void* send, void* receive, std::size_t count, const Operation&,
              int root) override;
  void scan(const void* send, void* receive, std::size_t count, const Operation&,
            bool exclusive) override;
  void reduce_scatter(const void* send, void* receive, const std::size_t* counts,
                      const Operation&) override;
  void broadcast(void* data, std::size_t bytes, int root) override;
  void allgather(const void* send, void* receive, const Blocks&) override;
  void gather(const void* send, std::size_t bytes, void* receive, const Blocks&, int root) override;
  void scatter(const void* send, const Blocks&, void* receive, std::size_t bytes,
               int root) override;
  void alltoall(const void* send, void* receive, std::size_t bytes_each) override;
  void alltoallv(const void* send, const Blocks& sends, void* receive,
                 const Blocks& receives) override;

  int nodes() const noexcept override { return 0; }
  Path path() const noexcept override { return Path::mpi; }

 private:
  template <class Call>
  void make(const Call& call);

  mpi::Comm comm_{};
  int rank_;
  nodes::Nodes* hierarchy_ = nullptr;  // null: none
};

}  // namespace ropewalk::collectives
