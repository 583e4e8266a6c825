// Settings that must be the same on all ranks are compared all at once, by one number from each
// rank. Only where these differ do ranks tell each other the values (mpi/settings.hpp has the
// messages).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "settings/table.hpp"

namespace ropewalk::settings {

// Hashes all settings of that scope as this rank has them now. The hash is equal where they mean
// the same, as 1M and 1048576 do, or nothing and the default. A file means what is in it
// (contents.hpp).
std::uint64_t fingerprint() noexcept;

// This is one value as ranks tell it to each other; it is sent as bytes.
struct Told {
  std::uint64_t hash;         // of what it means
  std::array<char, 56> text;  // as it was found, cut to fit
};
// The values are by Id; what may differ is left empty.
struct AllTold {
  std::array<Told, options> of;
};

AllTold tell() noexcept;

// Throws Error(argument) for the first setting that differs between two ranks, the same on every
// rank: it names the variable, both values and both ranks. Does nothing where all are the same. It
// is a pure function.
void require_same(std::span<const AllTold> ranks);

}  // namespace ropewalk::settings
