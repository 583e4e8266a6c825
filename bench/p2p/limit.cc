// Flags and copies without messages; see limit.hpp.
#include "p2p/limit.hpp"

#include <sched.h>

#include <new>

namespace ropewalk::bench {
namespace {

constexpr std::size_t cache_line = 64;
constexpr int looks_before_yield = 1000;  // ranks may share a core

std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
std::byte* bytes_of(float* memory) { return reinterpret_cast<std::byte*>(memory); }
float* floats_of(std::byte* memory) { return reinterpret_cast<float*>(memory); }

}  // namespace

P2pLimit::P2pLimit(const Ranks& ranks, std::size_t bytes) : node_(ranks.communicator()) {
  const std::size_t flag_offset = (bytes + alignof(Flag) - 1) / alignof(Flag) * alignof(Flag);
  ranks.collectively([&] {
    send_ = Buffer<std::byte>(bytes);
    receive_ = Buffer<std::byte>(flag_offset + sizeof(Flag));
    new (receive_.data() + flag_offset) Flag{};
  });
  all_ = everybody(ranks, node_, floats_of(send_.data()), floats_of(receive_.data()));
  ranks.barrier();  // every flag is 0
  if (all_.receive.empty()) return;
  const auto flag_of = [&](int rank) {
    return reinterpret_cast<Flag*>(bytes_of(all_.receive[at(rank)]) + flag_offset);
  };
  mine_ = flag_of(ranks.rank());
  theirs_ = flag_of(ranks.rank() ^ 1);
}

// Pairs with the release of the other rank in time_flags().
void P2pLimit::wait_for(std::uint64_t number) const {
  for (int look = 1; theirs_->number.load(std::memory_order_acquire) < number; ++look) {
    if (look % looks_before_yield == 0) sched_yield();
  }
}

P2pSample P2pLimit::time_flags(const P2pRun& run) {
  const double begin = now_us();
  for (int i = 0; i < run.iterations; ++i) {
    ++last_;
    if (run.leads()) mine_->number.store(last_, std::memory_order_release);
    wait_for(last_);
    if (!run.leads()) mine_->number.store(last_, std::memory_order_release);
  }
  return {now_us() - begin, ""};
}

void P2pLimit::copy_half(int from, int to, const P2pRun& run, int message,
                         kernels::Stores stores) const {
  const std::size_t front = run.bytes / 2 / cache_line * cache_line;
  const bool receives = run.rank == to;
  const std::size_t begin = run.offset(message) + (receives ? 0 : front);
  const std::size_t length = receives ? front : run.bytes - front;
  kernels::copy(bytes_of(all_.receive[at(to)]) + begin, bytes_of(all_.send[at(from)]) + begin,
                length, stores);
}

P2pSample P2pLimit::time_copies(const P2pRun& run, const std::function<void()>& meet,
                                kernels::Stores stores) const {
  const int first = run.rank & ~1;
  const int second = first + 1;
  return timed(run, meet, [&] {
    for (int message = 0; message < run.window; ++message) {
      copy_half(first, second, run, message, stores);
      if (!run.is_one_way()) copy_half(second, first, run, message, stores);
    }
  });
}

}  // namespace ropewalk::bench
