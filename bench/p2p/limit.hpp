// The physical limit of messages: a cache line that goes to the other core and back, and the bytes
// of the messages copied straight between the buffers of the two ranks, without any flag.
#pragma once

#include <atomic>
#include <functional>

#include "collectives/calls.hpp"
#include "common/ranks.hpp"
#include "kernels/kernels.hpp"
#include "p2p/exchange.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::bench {

// Two buffers of the arena for each rank, which the other rank of its pair has mapped.
class P2pLimit {
 public:
  // Collective. `bytes`: of each buffer.
  P2pLimit(const Ranks& ranks, std::size_t bytes);

  // Whether the ranks of this pair map each other's buffers.
  bool is_there() const noexcept { return mine_ != nullptr; }
  std::byte* send() const noexcept { return send_.data(); }
  std::byte* receive() const noexcept { return receive_.data(); }

  // Ping-pongs of one cache line.
  P2pSample time_flags(const P2pRun& run);
  // Each rank copies half of every message: the receiver its front, the sender its back.
  P2pSample time_copies(const P2pRun& run, const std::function<void()>& meet,
                        kernels::Stores stores) const;

 private:
  // One rank writes it; the other one reads it.
  struct alignas(128) Flag {
    std::atomic<std::uint64_t> number;
  };

  void copy_half(int from, int to, const P2pRun& run, int message, kernels::Stores stores) const;
  void wait_for(std::uint64_t number) const;

  Collectives node_;
  Buffer<std::byte> send_;
  Buffer<std::byte> receive_;  // and a Flag behind it
  Everybody all_;
  Flag* mine_ = nullptr;
  const Flag* theirs_ = nullptr;
  std::uint64_t last_ = 0;
};

}  // namespace ropewalk::bench
