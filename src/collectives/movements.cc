// This file has the movements of bytes that Collectives offers. Their arguments are checked, and
// in-place buffers resolved, here and nowhere else; then the backend makes the call.
#include <string>

#include "collectives/blocks.hpp"
#include "collectives/checks.hpp"
#include "collectives/datatypes.hpp"
#include "collectives/state.hpp"

namespace ropewalk {

namespace {

using collectives::Blocks;
using collectives::check_buffer;
using collectives::check_counts;
using collectives::check_root;
using collectives::EqualBlocks;
using collectives::is_in_place;

void check_blocks(Collectives::State& state, const void* buffer, const Blocks& blocks,
                  const char* argument) {
  check_counts(state, blocks.counts, "counts");
  check_counts(state, blocks.displacements, "displacements");
  check_buffer(state, buffer, blocks.end(state.size), argument);
}

// A rank that has blocks for all ranks has one for itself as well.
void check_own_count(Collectives::State& state, std::size_t bytes, const Blocks& blocks,
                     const char* argument) {
  if (bytes == blocks.counts[state.rank]) return;
  collectives::refuse(state, std::string(argument) + ": " + std::to_string(bytes) +
                                 " differ from this rank's own count of " +
                                 std::to_string(blocks.counts[state.rank]));
}

void allgather_blocks(Collectives::State& state, const void* send, std::size_t send_bytes,
                      void* receive, const Blocks& blocks) {
  state.run([&] {
    check_blocks(state, receive, blocks, "receive");
    if (is_in_place(send)) {
      send = static_cast<std::byte*>(receive) + blocks.displacements[state.rank];
      send_bytes = blocks.counts[state.rank];
    }
    check_own_count(state, send_bytes, blocks, "send_bytes");
    check_buffer(state, send, send_bytes, "send");
    state.backend->allgather(send, receive, blocks);
  });
}

void gather_blocks(Collectives::State& state, const void* send, std::size_t send_bytes,
                   void* receive, const Blocks& blocks, int root) {
  state.run([&] {
    check_root(state, root);
    const bool at_root = state.rank == root;
    if (at_root) check_blocks(state, receive, blocks, "receive");
    if (is_in_place(send)) {
      if (!at_root) {
        collectives::refuse(state,
                            "send: in place is for the root alone; pass this rank's elements");
      }
      send = static_cast<std::byte*>(receive) + blocks.displacements[root];
      send_bytes = blocks.counts[root];
    }
    if (at_root) check_own_count(state, send_bytes, blocks, "send_bytes");
    check_buffer(state, send, send_bytes, "send");
    state.backend->gather(send, send_bytes, receive, blocks, root);
  });
}

void scatter_blocks(Collectives::State& state, const void* send, const Blocks& blocks,
                    void* receive, std::size_t receive_bytes, int root) {
  state.run([&] {
    check_root(state, root);
    const bool at_root = state.rank == root;
    if (at_root) check_blocks(state, send, blocks, "send");
    if (is_in_place(receive)) {
      if (!at_root) {
        collectives::refuse(state, "receive: in place is for the root alone; pass a buffer");
      }
      receive = nullptr;
    } else {
      if (at_root) check_own_count(state, receive_bytes, blocks, "receive_bytes");
      check_buffer(state, receive, receive_bytes, "receive");
    }
    state.backend->scatter(send, blocks, receive, receive_bytes, root);
  });
}

}  // namespace

void Collectives::barrier() {
  state_->run([&] { state_->backend->barrier(); });
}

void Collectives::broadcast(void* data, std::size_t bytes, int root) {
  state_->run([&] {
    check_root(*state_, root);
    check_buffer(*state_, data, bytes, "data");
    state_->backend->broadcast(data, bytes, root);
  });
}

void Collectives::allgather(const void* send, void* receive, std::size_t bytes_each) {
  state_->run([&] {
    const EqualBlocks blocks(state_->size, bytes_each);
    allgather_blocks(*state_, send, bytes_each, receive, blocks.blocks());
  });
}

void Collectives::allgatherv(const void* send, std::size_t send_bytes, void* receive,
                             const std::size_t* counts, const std::size_t* displacements) {
  allgather_blocks(*state_, send, send_bytes, receive, {counts, displacements});
}

void Collectives::gather(const void* send, void* receive, std::size_t bytes_each, int root) {
  state_->run([&] {
    const EqualBlocks blocks(state_->size, bytes_each);
    gather_blocks(*state_, send, bytes_each, receive, blocks.blocks(), root);
  });
}

void Collectives::gatherv(const void* send, std::size_t send_bytes, void* receive,
                          const std::size_t* counts, const std::size_t* displacements, int root) {
  gather_blocks(*state_, send, send_bytes, receive, {counts, displacements}, root);
}

void Collectives::scatter(const void* send, void* receive, std::size_t bytes_each, int root) {
  state_->run([&] {
    const EqualBlocks blocks(state_->size, bytes_each);
    scatter_blocks(*state_, send, blocks.blocks(), receive, bytes_each, root);
  });
}

void Collectives::scatterv(const void* send, const std::size_t* counts,
                           const std::size_t* displacements, void* receive,
                           std::size_t receive_bytes, int root) {
  scatter_blocks(*state_, send, {counts, displacements}, receive, receive_bytes, root);
}

void Collectives::alltoall(const void* send, void* receive, std::size_t bytes_each) {
  const std::size_t total = bytes_each * static_cast<std::size_t>(state_->size);
  state_->run([&] {
    if (is_in_place(send)) send = receive;
    check_buffer(*state_, send, total, "send");
    check_buffer(*state_, receive, total, "receive");
    state_->backend->alltoall(send, receive, bytes_each);
  });
}

void Collectives::alltoallv(const void* send, const std::size_t* send_counts,
                            const std::size_t* send_displacements, void* receive,
                            const std::size_t* receive_counts,
                            const std::size_t* receive_displacements) {
  state_->run([&] {
    const Blocks receives{receive_counts, receive_displacements};
    Blocks sends{send_counts, send_displacements};
    if (is_in_place(send)) {
      send = receive;
      sends = receives;
      sends.in_place = true;
    }
    check_blocks(*state_, send, sends, "send");
    check_blocks(*state_, receive, receives, "receive");
    state_->backend->alltoallv(send, sends, receive, receives);
  });
}

}  // namespace ropewalk
