// No program of the model passes parts with types of their own: they would need MPI's datatypes.
#include "collectives/typed_parts.hpp"

#include <cstdlib>

namespace ropewalk::collectives {

std::size_t Landings::bytes(std::span<const TypedPart> /*receives*/) noexcept { return 0; }
std::byte* Landings::of(std::size_t /*part*/) const noexcept { return nullptr; }
void Landings::unpack() const {}

ShownParts show_parts(Engine& /*engine*/, node::Slot& /*own*/, std::span<const TypedPart> /*sends*/,
                      bool /*overwritten*/, int /*left_out*/, std::size_t /*landing_bytes*/) {
  std::abort();
}

Taken take_part(Engine& /*engine*/, int /*peer*/, const node::Slot& /*slot*/, std::size_t /*part*/,
                const TypedPart& /*to*/, std::byte* /*landing*/) {
  std::abort();
}

}  // namespace ropewalk::collectives
