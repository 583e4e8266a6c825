// The memory of FaceSizes, and the measurement of what is done with it.
#include "halo/own_faces.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "halo/joint.hpp"
#include "kernels/kernels.hpp"

namespace ropewalk::halo {

namespace {

// The least of a few repetitions, each after one that is not counted: it brings what the strategy
// before has driven out of the caches.
constexpr std::size_t repetitions = 4;

// What the store buffer takes is as well stored the plain way (direct.cc).
constexpr std::size_t streaming_bytes = std::size_t{4} << 10;

std::size_t rounded(std::size_t bytes) {
  constexpr std::size_t alignment = alignof(FlagLine);
  return (bytes + alignment - 1) / alignment * alignment;
}

// As an application would: faces that other ranks read, or copy, are stored around the caches.
void gather(const Halo& halo, const FaceSizes& sizes, const Buffer<std::byte>& field) {
  const bool shared = halo.strategy() >= Strategy::direct;
  for (std::size_t i = 0; i < sizes.bytes.size(); ++i) {
    void* to = halo.send_buffer(static_cast<int>(i));
    if (to == nullptr) continue;
    const bool stream = shared && sizes.bytes[i] > streaming_bytes;
    kernels::copy(to, field.data(), sizes.bytes[i],
                  stream ? kernels::Stores::streaming : kernels::Stores::temporal);
  }
}

std::uint64_t read(const Halo& halo, const FaceSizes& sizes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < sizes.bytes.size(); ++i) {
    const void* face = halo.receive_buffer(static_cast<int>(i));
    if (face == nullptr) continue;
    for (std::size_t at = 0; at + sizeof sum <= sizes.bytes[i]; at += sizeof sum) {
      std::uint64_t word = 0;
      std::memcpy(&word, static_cast<const std::byte*>(face) + at, sizeof word);
      sum += word;
    }
  }
  return sum;
}

double seconds(Halo& halo, const FaceSizes& sizes, const Buffer<std::byte>& field, mpi::Comm comm) {
  mpi::barrier(comm);
  const auto begin = std::chrono::steady_clock::now();
  gather(halo, sizes, field);
  halo.exchange();
  volatile std::uint64_t sum = read(halo, sizes);
  static_cast<void>(sum);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

OwnFaces own_faces(const Links& links, const FaceSizes& sizes) {
  OwnFaces out;
  out.packets = {std::vector<const void*>(sizes.bytes.size()),
                 std::vector<void*>(sizes.bytes.size()), sizes.bytes};
  std::size_t sum = 0;
  for (const Link& link : links.present) sum += 2 * rounded(sizes.bytes[face_index(link.offset)]);
  if (sum == 0) return out;
  out.memory = Buffer<std::byte>(sum);
  std::byte* next = out.memory.data();
  for (const Link& link : links.present) {
    const std::size_t i = face_index(link.offset);
    if (sizes.bytes[i] == 0) continue;
    out.packets.send[i] = next;
    out.packets.receive[i] = next + rounded(sizes.bytes[i]);
    next += 2 * rounded(sizes.bytes[i]);
  }
  return out;
}

Places places_of(const FacePackets& packets) {
  Places out;
  for (std::size_t turn = 0; turn < 2; ++turn) {
    // The halo's own memory, const only in the interface that takes it from a caller.
    for (const void* send : packets.send) out.send[turn].push_back(const_cast<void*>(send));
    out.receive[turn] = packets.receive;
  }
  return out;
}

std::size_t fastest_of(mpi::Comm comm, std::vector<Halo>& halos, const FaceSizes& sizes) {
  Buffer<std::byte> field;
  try {
    jointly(comm, [&] {
      const std::size_t most = *std::max_element(sizes.bytes.begin(), sizes.bytes.end());
      if (most > 0) field = Buffer<std::byte>(most);
    });
  } catch (const Error& error) {  // the same on all ranks
    if (error.code() != ErrorCode::memory) throw;
    return 0;
  }
  std::vector<double> times;  // repetition by repetition, so that drift meets all alike
  for (std::size_t r = 0; r < repetitions; ++r) {
    for (Halo& halo : halos) {
      seconds(halo, sizes, field, comm);
      times.push_back(seconds(halo, sizes, field, comm));
    }
  }
  mpi::all_reduce(std::span<double>(times), mpi::Combine::max, comm);
  std::vector<double> best(halos.size(), std::numeric_limits<double>::max());
  for (std::size_t i = 0; i < times.size(); ++i) {
    double& least = best[i % halos.size()];
    least = std::min(least, times[i]);
  }
  return static_cast<std::size_t>(std::min_element(best.begin(), best.end()) - best.begin());
}

}  // namespace ropewalk::halo
