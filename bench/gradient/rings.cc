// Rings over the ranks; see rings.hpp. Step k of the first half: segment (rank - k) goes to the
// next rank, which adds it to its own; after size - 1 steps each rank has one segment of the sum,
// and the second half passes those round.
#include "gradient/rings.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "common/pages.hpp"

namespace ropewalk::bench {
namespace {

constexpr int ring_tag = 77;

// The loop adds one element after the other, as the published code does. It is not vectorised,
// because compilers of that time did not vectorise at -O2.
#if !defined(__clang__)
__attribute__((optimize("no-tree-vectorize")))
#endif
void add_published(float* to, const float* from, std::size_t count) {
#if defined(__clang__)
#pragma clang loop vectorize(disable) interleave(disable)
#endif
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}

// Adds eight elements at once, as one would write it today.
void add(float* to, const float* from, std::size_t count) {
  using Vector __attribute__((vector_size(32), aligned(4), may_alias)) = float;
  constexpr std::size_t width = sizeof(Vector) / sizeof(float);
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    *reinterpret_cast<Vector*>(to + i) += *reinterpret_cast<const Vector*>(from + i);
  }
  for (; i < count; ++i) to[i] += from[i];
}

std::size_t part_begin(std::size_t count, int part, int parts) {
  return count * static_cast<std::size_t>(part) / static_cast<std::size_t>(parts);
}

struct Neighbours {
  int next;
  int previous;
  int size;

  int back(int rank, int steps) const { return (rank - steps + 2 * size) % size; }
};

}  // namespace

PublishedRing::PublishedRing(const Ranks& ranks) : rank_(ranks.rank()), size_(ranks.size()) {}

float* PublishedRing::reduce(const float* data, std::size_t count, Stopwatch& communication) const {
  const mpi::Comm world = mpi::comm_world();
  const Neighbours ring{(rank_ + 1) % size_, (rank_ + size_ - 1) % size_, size_};
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(size_));
  const std::uint64_t own = count;
  communication.time([&] { mpi::all_gather(&own, lengths.data(), sizeof own, world); });
  const Segments segments(count, size_);
  auto* output = new float[std::max<std::size_t>(1, count)];
  std::copy_n(data, count, output);
  auto* buffer = new float[std::max<std::size_t>(1, segments.longest())];
  for (int step = 0; step < size_ - 1; ++step) {
    const int going = ring.back(rank_, step);
    const int coming = ring.back(rank_, step + 1);
    communication.time([&] {
      mpi::Request receive = mpi::ireceive(buffer, segments.length(coming) * sizeof(float),
                                           ring.previous, ring_tag, world);
      mpi::send(output + segments.begin(going), segments.length(going) * sizeof(float), ring.next,
                ring_tag, world);
      mpi::wait(receive);
    });
    add_published(output + segments.begin(coming), buffer, segments.length(coming));
  }
  for (int step = 0; step < size_ - 1; ++step) {
    const int going = ring.back(rank_ + 1, step);
    const int coming = ring.back(rank_, step);
    communication.time([&] {
      mpi::Request receive =
          mpi::ireceive(output + segments.begin(coming), segments.length(coming) * sizeof(float),
                        ring.previous, ring_tag, world);
      mpi::send(output + segments.begin(going), segments.length(going) * sizeof(float), ring.next,
                ring_tag, world);
      mpi::wait(receive);
    });
  }
  delete[] buffer;
  return output;
}

RingBuffers::RingBuffers(const std::string& kind, int ranks, std::size_t longest)
    : pages(kind),
      result(page_block(kind, longest * sizeof(float))),
      segment(page_block(kind, Segments(longest, ranks).longest() * sizeof(float))) {}

ImprovedRing::ImprovedRing(const Ranks& ranks, int threads, RingBuffers& buffers)
    : rank_(ranks.rank()), size_(ranks.size()), team_(threads), buffers_(buffers) {
  for (int thread = 0; thread < threads; ++thread) comms_.push_back(mpi::dup(mpi::comm_world()));
}

ImprovedRing::~ImprovedRing() {
  try {
    for (mpi::Comm& comm : comms_) mpi::free(comm);
  } catch (const std::exception&) {
    // The results are out; what the MPI says at the end does not change them.
  }
}

template <class Body>
void ImprovedRing::in_parts(std::size_t count, const Body& body) {
  team_.run([&](int thread) {
    const std::size_t begin = part_begin(count, thread, threads());
    body(begin, part_begin(count, thread + 1, threads()) - begin);
  });
}

// Each thread calls MPI_Sendrecv for a part.
void ImprovedRing::exchange(const float* send, std::size_t send_count, float* receive,
                            std::size_t receive_count, Stopwatch& communication) {
  const int next = (rank_ + 1) % size_;
  const int previous = (rank_ + size_ - 1) % size_;
  communication.time([&] {
    team_.run([&](int thread) {
      const mpi::Comm comm = comms_[static_cast<std::size_t>(thread)];
      const std::size_t from = part_begin(receive_count, thread, threads());
      const std::size_t to = part_begin(send_count, thread, threads());
      std::array<mpi::Request, 2> requests = {
          mpi::ireceive(receive + from,
                        (part_begin(receive_count, thread + 1, threads()) - from) * sizeof(float),
                        previous, ring_tag, comm),
          mpi::isend(send + to,
                     (part_begin(send_count, thread + 1, threads()) - to) * sizeof(float), next,
                     ring_tag, comm)};
      mpi::wait_all(requests);
    });
  });
}

const float* ImprovedRing::reduce(const float* data, std::size_t count, Stopwatch& communication) {
  auto* const output = reinterpret_cast<float*>(buffers_.result.data());
  auto* const buffer = reinterpret_cast<float*>(buffers_.segment.data());
  const Neighbours ring{0, 0, size_};
  const Segments segments(count, size_);
  in_parts(count, [&](std::size_t begin, std::size_t length) {
    std::copy_n(data + begin, length, output + begin);
  });
  for (int step = 0; step < size_ - 1; ++step) {
    const int going = ring.back(rank_, step);
    const int coming = ring.back(rank_, step + 1);
    exchange(output + segments.begin(going), segments.length(going), buffer,
             segments.length(coming), communication);
    in_parts(segments.length(coming), [&](std::size_t begin, std::size_t length) {
      add(output + segments.begin(coming) + begin, buffer + begin, length);
    });
  }
  for (int step = 0; step < size_ - 1; ++step) {
    const int going = ring.back(rank_ + 1, step);
    const int coming = ring.back(rank_, step);
    exchange(output + segments.begin(going), segments.length(going),
             output + segments.begin(coming), segments.length(coming), communication);
  }
  return output;
}

}  // namespace ropewalk::bench
