// This file holds the memory of HaloBuffers, and does with it what an application does.
#include "halo/own_faces.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

#include "halo/flags.hpp"
#include "kernels/kernels.hpp"

namespace ropewalk::halo {

namespace {

std::size_t rounded(std::size_t bytes) {
  constexpr std::size_t alignment = alignof(FlagLine);
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

Buffer<std::byte> make_own_faces(const Links& links, FacePackets& faces) {
  faces.send.assign(faces.bytes.size(), nullptr);
  faces.receive.assign(faces.bytes.size(), nullptr);
  std::size_t sum = 0;
  for (const Link& link : links.present) sum += 2 * rounded(faces.bytes[face_index(link.offset)]);
  if (sum == 0) return {};
  Buffer<std::byte> out(sum);
  std::byte* next = out.data();
  for (const Link& link : links.present) {
    const std::size_t i = face_index(link.offset);
    if (faces.bytes[i] == 0) continue;
    faces.send[i] = next;
    faces.receive[i] = next + rounded(faces.bytes[i]);
    next += 2 * rounded(faces.bytes[i]);
  }
  return out;
}

Places places_of(const FacePackets& faces) {
  Places out;
  for (std::size_t turn = 0; turn < 2; ++turn) {
    // This is the halo's own memory, const only in the interface that takes it from a caller.
    for (const void* send : faces.send) out.send[turn].push_back(const_cast<void*>(send));
    out.receive[turn] = faces.receive;
  }
  return out;
}

// Faces that other ranks read or copy are stored around the caches, as an application does.
void gather_faces(const Carrier& carrier, const Places& places,
                  const std::vector<std::size_t>& bytes, const Buffer<std::byte>& field,
                  std::size_t streaming_bytes) {
  const bool shared = uses_shared_memory(carrier.strategy());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    void* to = places.send[1 - carrier.turn()][i];
    if (to == nullptr) continue;
    const bool stream = shared && bytes[i] > streaming_bytes;
    kernels::copy(to, field.data(), bytes[i],
                  stream ? kernels::Stores::streaming : kernels::Stores::temporal);
  }
}

std::uint64_t read_faces(const Carrier& carrier, const Places& places,
                         const std::vector<std::size_t>& bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const void* face = places.receive[carrier.turn()][i];
    if (face == nullptr) continue;
    for (std::size_t at = 0; at + sizeof sum <= bytes[i]; at += sizeof sum) {
      std::uint64_t word = 0;
      std::memcpy(&word, static_cast<const std::byte*>(face) + at, sizeof word);
      sum += word;
    }
  }
  return sum;
}

}  // namespace ropewalk::halo
