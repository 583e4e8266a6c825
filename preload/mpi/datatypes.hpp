// The datatypes and operations of a call, as the collectives take them.
#pragma once

#include <optional>

#include "collectives/typed.hpp"
#include "functions.hpp"

namespace ropewalk::preload {

// Set when the MPI is known: handles that are ints come with an undefined upper half.
extern Word handle_bits;
inline Word clean(Word handle) noexcept { return handle & handle_bits; }

// Null for what MPI must judge. Derived types are asked about once: the answer is an attribute of
// the type. `room` is where the answer for a predefined type is put.
const collectives::Elements* elements_of(Word type, collectives::Elements& room) noexcept;

// No value for a pair that MPI must judge.
std::optional<collectives::typed::Reduction> reduction_of(Word type, Word op) noexcept;

}  // namespace ropewalk::preload
