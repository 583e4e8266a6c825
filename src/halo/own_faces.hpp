// Faces in memory of the halo's own (HaloBuffers), for carriers that copy: a send and a receive
// buffer for each face.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "halo/carrier.hpp"
#include "halo/links.hpp"
#include "halo/request.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::halo {

// Sets `send` and `receive` of faces that have bytes alone. Throws Error(memory) where there is no
// room.
Buffer<std::byte> make_own_faces(const Links&, FacePackets& faces);

// The same places in every turn.
Places places_of(const FacePackets&);

// `automatic` measures a step of an application that has such faces: it gathers faces from a field
// into the places where they are sent from, and reads those that came. Where others read them in
// place, faces longer than `streaming_bytes` are stored past the caches.
void gather_faces(const Carrier&, const Places&, const std::vector<std::size_t>& bytes,
                  const Buffer<std::byte>& field, std::size_t streaming_bytes);
std::uint64_t read_faces(const Carrier&, const Places&, const std::vector<std::size_t>& bytes);

}  // namespace ropewalk::halo
