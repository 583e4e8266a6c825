// The movements of bytes that a NodeCommunicator offers.
#include <array>
#include <cstring>
#include <vector>

#include "collectives/algorithms.hpp"
#include "collectives/checks.hpp"
#include "collectives/datatypes.hpp"
#include "collectives/nodes/algorithms.hpp"
#include "collectives/state.hpp"
#include "collectives/through_mpi.hpp"

namespace ropewalk {

namespace {

namespace nodes = collectives::nodes;
using collectives::Blocks;
using collectives::check_buffer;
using collectives::check_counts;
using collectives::check_root;
using collectives::is_in_place;

// Equal blocks as one count and displacement a rank; no allocation for the usual number of ranks.
class EqualBlocks {
 public:
  EqualBlocks(int ranks, std::size_t bytes) {
    const auto size = static_cast<std::size_t>(ranks);
    if (size > few) more_.resize(2 * size);
    counts_ = size > few ? more_.data() : room_.data();
    displacements_ = counts_ + size;
    for (std::size_t peer = 0; peer < size; ++peer) {
      counts_[peer] = bytes;
      displacements_[peer] = peer * bytes;
    }
  }
  EqualBlocks(const EqualBlocks&) = delete;
  EqualBlocks& operator=(const EqualBlocks&) = delete;
  const std::size_t* counts() const noexcept { return counts_; }
  const std::size_t* displacements() const noexcept { return displacements_; }

 private:
  static constexpr std::size_t few = 32;
  std::array<std::size_t, 2 * few> room_;  // not set: only what is used is written
  std::vector<std::size_t> more_;
  std::size_t* counts_;
  std::size_t* displacements_;
};

void check_blocks(NodeCommunicator::State& state, const void* buffer, const std::size_t* counts,
                  const std::size_t* displacements, const char* argument) {
  check_counts(state, counts, "counts");
  check_counts(state, displacements, "displacements");
  check_buffer(state, buffer, Blocks{counts, displacements}.end(state.size), argument);
}

void copy_alone(const void* send, void* receive, std::size_t bytes) {
  if (bytes > 0 && send != receive) std::memmove(receive, send, bytes);
}

void allgather_blocks(NodeCommunicator::State& state, const void* send, std::size_t send_bytes,
                      void* receive, const std::size_t* counts, const std::size_t* displacements,
                      bool equal) {
  state.run([&] {
    check_blocks(state, receive, counts, displacements, "receive");
    auto* target = static_cast<std::byte*>(receive);
    if (is_in_place(send)) {
      send = target + displacements[state.rank];
      send_bytes = counts[state.rank];
    }
    if (send_bytes != counts[state.rank]) {
      collectives::refuse(
          state, "send_bytes: " + std::to_string(send_bytes) +
                     " differ from counts[own rank] = " + std::to_string(counts[state.rank]));
    }
    check_buffer(state, send, send_bytes, "send");
    if (state.nodes != nullptr) {
      nodes::allgather(state, send, receive, {counts, displacements}, equal);
    } else if (state.engine == nullptr) {
      collectives::mpi_allgatherv(state, send, send_bytes, receive, counts, displacements);
    } else if (state.size == 1) {
      copy_alone(send, target + displacements[0], send_bytes);
    } else {
      collectives::allgather(*state.engine, send, receive, {counts, displacements});
    }
  });
}

void gather_blocks(NodeCommunicator::State& state, const void* send, std::size_t send_bytes,
                   void* receive, const std::size_t* counts, const std::size_t* displacements,
                   int root, bool equal) {
  state.run([&] {
    check_root(state, root);
    const bool at_root = state.rank == root;
    auto* target = static_cast<std::byte*>(receive);
    if (at_root) check_blocks(state, receive, counts, displacements, "receive");
    if (is_in_place(send)) {
      if (!at_root) collectives::refuse(state, "send: in place is for the root alone");
      send = target + displacements[root];
      send_bytes = counts[root];
    }
    if (at_root && send_bytes != counts[root]) {
      collectives::refuse(state, "send_bytes: " + std::to_string(send_bytes) +
                                     " differ from the root's own count of " +
                                     std::to_string(counts[root]));
    }
    check_buffer(state, send, send_bytes, "send");
    const Blocks blocks{counts, displacements};
    if (state.nodes != nullptr) {
      nodes::gather(state, send, send_bytes, receive, blocks, root, equal);
    } else if (state.engine == nullptr) {
      collectives::mpi_gatherv(state, send, send_bytes, receive, counts, displacements, root);
    } else if (state.size == 1) {
      copy_alone(send, target + displacements[0], send_bytes);
    } else {
      collectives::gather(*state.engine, send, send_bytes, receive, at_root ? &blocks : nullptr,
                          root);
    }
  });
}

void scatter_blocks(NodeCommunicator::State& state, const void* send, const std::size_t* counts,
                    const std::size_t* displacements, void* receive, std::size_t receive_bytes,
                    int root, bool equal) {
  state.run([&] {
    check_root(state, root);
    const bool at_root = state.rank == root;
    const auto* source = static_cast<const std::byte*>(send);
    if (at_root) check_blocks(state, send, counts, displacements, "send");
    const bool stays = is_in_place(receive);
    if (stays && !at_root) collectives::refuse(state, "receive: in place is for the root alone");
    if (at_root && !stays && receive_bytes != counts[root]) {
      collectives::refuse(state, "receive_bytes: " + std::to_string(receive_bytes) +
                                     " differ from the root's own count of " +
                                     std::to_string(counts[root]));
    }
    if (stays) {
      receive = nullptr;
    } else {
      check_buffer(state, receive, receive_bytes, "receive");
    }
    const Blocks blocks{counts, displacements};
    if (state.nodes != nullptr) {
      nodes::scatter(state, send, blocks, receive, receive_bytes, root, equal);
    } else if (state.engine == nullptr) {
      collectives::mpi_scatterv(state, send, counts, displacements, receive, receive_bytes, root);
    } else if (state.size == 1) {
      if (receive != nullptr) copy_alone(source + displacements[0], receive, receive_bytes);
    } else {
      collectives::scatter(*state.engine, send, at_root ? &blocks : nullptr, receive, receive_bytes,
                           root);
    }
  });
}

}  // namespace

void NodeCommunicator::barrier() {
  state_->run([&] {
    if (state_->nodes != nullptr) {
      nodes::barrier(*state_);
    } else if (state_->engine == nullptr) {
      collectives::mpi_barrier(*state_);
    } else if (state_->size > 1) {
      collectives::barrier(*state_->engine);
    }
  });
}

void NodeCommunicator::broadcast(void* data, std::size_t bytes, int root) {
  state_->run([&] {
    check_root(*state_, root);
    check_buffer(*state_, data, bytes, "data");
    if (state_->nodes != nullptr) {
      nodes::broadcast(*state_, data, bytes, root);
    } else if (state_->engine == nullptr) {
      collectives::mpi_broadcast(*state_, data, bytes, root);
    } else if (state_->size > 1) {
      collectives::broadcast(*state_->engine, data, bytes, root);
    }
  });
}

void NodeCommunicator::allgather(const void* send, void* receive, std::size_t bytes_each) {
  state_->run([&] {
    const EqualBlocks blocks(state_->size, bytes_each);
    allgather_blocks(*state_, send, bytes_each, receive, blocks.counts(), blocks.displacements(),
                     true);
  });
}

void NodeCommunicator::allgatherv(const void* send, std::size_t send_bytes, void* receive,
                                  const std::size_t* counts, const std::size_t* displacements) {
  allgather_blocks(*state_, send, send_bytes, receive, counts, displacements, false);
}

void NodeCommunicator::gather(const void* send, void* receive, std::size_t bytes_each, int root) {
  state_->run([&] {
    const EqualBlocks blocks(state_->size, bytes_each);
    gather_blocks(*state_, send, bytes_each, receive, blocks.counts(), blocks.displacements(), root,
                  true);
  });
}

void NodeCommunicator::gatherv(const void* send, std::size_t send_bytes, void* receive,
                               const std::size_t* counts, const std::size_t* displacements,
                               int root) {
  gather_blocks(*state_, send, send_bytes, receive, counts, displacements, root, false);
}

void NodeCommunicator::scatter(const void* send, void* receive, std::size_t bytes_each, int root) {
  state_->run([&] {
    const EqualBlocks blocks(state_->size, bytes_each);
    scatter_blocks(*state_, send, blocks.counts(), blocks.displacements(), receive, bytes_each,
                   root, true);
  });
}

void NodeCommunicator::scatterv(const void* send, const std::size_t* counts,
                                const std::size_t* displacements, void* receive,
                                std::size_t receive_bytes, int root) {
  scatter_blocks(*state_, send, counts, displacements, receive, receive_bytes, root, false);
}

void NodeCommunicator::alltoall(const void* send, void* receive, std::size_t bytes_each) {
  const std::size_t total = bytes_each * static_cast<std::size_t>(state_->size);
  state_->run([&] {
    if (is_in_place(send)) send = receive;
    check_buffer(*state_, send, total, "send");
    check_buffer(*state_, receive, total, "receive");
    if (state_->nodes != nullptr) {
      nodes::alltoall(*state_, send, receive, bytes_each);
    } else if (state_->engine == nullptr) {
      const EqualBlocks blocks(state_->size, bytes_each);
      collectives::mpi_alltoallv(*state_, send, blocks.counts(), blocks.displacements(), receive,
                                 blocks.counts(), blocks.displacements());
    } else if (state_->size == 1) {
      copy_alone(send, receive, total);
    } else {
      collectives::alltoall(*state_->engine, send, receive, bytes_each);
    }
  });
}

void NodeCommunicator::alltoallv(const void* send, const std::size_t* send_counts,
                                 const std::size_t* send_displacements, void* receive,
                                 const std::size_t* receive_counts,
                                 const std::size_t* receive_displacements) {
  state_->run([&] {
    if (is_in_place(send)) {
      send = receive;
      send_counts = receive_counts;
      send_displacements = receive_displacements;
    }
    check_blocks(*state_, send, send_counts, send_displacements, "send");
    check_blocks(*state_, receive, receive_counts, receive_displacements, "receive");
    if (state_->nodes != nullptr) {
      nodes::alltoallv(*state_, send, {send_counts, send_displacements}, receive,
                       {receive_counts, receive_displacements});
    } else if (state_->engine == nullptr) {
      collectives::mpi_alltoallv(*state_, send, send_counts, send_displacements, receive,
                                 receive_counts, receive_displacements);
    } else if (state_->size == 1) {
      copy_alone(static_cast<const std::byte*>(send) + send_displacements[0],
                 static_cast<std::byte*>(receive) + receive_displacements[0], receive_counts[0]);
    } else {
      collectives::alltoallv(*state_->engine, send, {send_counts, send_displacements}, receive,
                             {receive_counts, receive_displacements});
    }
  });
}

}  // namespace ropewalk
