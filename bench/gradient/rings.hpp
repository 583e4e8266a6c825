// The reductions that ropewalk is compared with: a ring as Boyle et al. 2017 found it, and as they
// left it. Written anew from their description (section IV); with ranks.cc and
// collectives/calls.cc, what bench/ knows of src/mpi.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/ranks.hpp"
#include "common/timed_threads.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::bench {

// Microseconds inside MPI's calls, of one thread, added up over calls.
class Stopwatch {
 public:
  template <class Call>
  void time(Call&& call) {
    const double begin = now_us();
    call();
    us_ += now_us() - begin;
  }
  double us() const noexcept { return us_; }

 private:
  double us_ = 0;
};

// The segments of a ring: `count` elements dealt to `ranks`, the first ones longer by one.
class Segments {
 public:
  Segments(std::size_t count, int ranks) : count_(count), ranks_(static_cast<std::size_t>(ranks)) {}
  std::size_t begin(int segment) const {
    const auto index = static_cast<std::size_t>(segment);
    return index * (count_ / ranks_) + std::min(index, count_ % ranks_);
  }
  std::size_t length(int segment) const { return begin(segment + 1) - begin(segment); }
  std::size_t longest() const { return count_ / ranks_ + (count_ % ranks_ != 0 ? 1 : 0); }

 private:
  std::size_t count_;
  std::size_t ranks_;
};

// The ring as published: lengths are gathered; result and segment come from `new` and go to
// `delete` in every call; one thread, one communicator; a segment is sent whole before the one that
// came is added.
class PublishedRing {
 public:
  explicit PublishedRing(const Ranks& ranks);
  // The result is the caller's to delete[], as it was there.
  float* reduce(const float* data, std::size_t count, Stopwatch& communication) const;

 private:
  int rank_;
  int size_;
};

// What an ImprovedRing keeps between calls; rings that run in turn may share one.
struct RingBuffers {
  // pages: one of page_kinds(). Throws Error(memory).
  RingBuffers(const std::string& pages, int ranks, std::size_t longest);

  std::string pages;
  PageBlock result;
  PageBlock segment;
};

// The ring as improved: buffers are kept (on 2 MiB pages, there); each thread exchanges its part of
// a segment on a communicator of its own, copies and adds its part of the elements.
class ImprovedRing {
 public:
  // `buffers` must outlive it.
  ImprovedRing(const Ranks& ranks, int threads, RingBuffers& buffers);
  ~ImprovedRing();
  ImprovedRing(const ImprovedRing&) = delete;
  ImprovedRing& operator=(const ImprovedRing&) = delete;

  int threads() const noexcept { return team_.size(); }
  const RingBuffers& buffers() const noexcept { return buffers_; }
  // The result stays here until the next call.
  const float* reduce(const float* data, std::size_t count, Stopwatch& communication);

 private:
  void exchange(const float* send, std::size_t send_count, float* receive,
                std::size_t receive_count, Stopwatch& communication);
  template <class Body>
  void in_parts(std::size_t count, const Body& body);

  int rank_;
  int size_;
  std::vector<mpi::Comm> comms_;
  TimedThreads team_;
  RingBuffers& buffers_;
};

}  // namespace ropewalk::bench
