// Settings that must be the same on all ranks: compared all at once, by one number a rank. Only
// where these differ do ranks tell each other the values (mpi/settings.hpp has the messages).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "settings/table.hpp"

namespace ropewalk::settings {

// Of all settings of that scope as this rank has them now: equal where they mean the same, as 1M
// and 1048576 do, or nothing and the default. A file means what is in it (contents.hpp).
std::uint64_t fingerprint() noexcept;

// One value as ranks tell it to each other; sent as bytes.
struct Told {
  std::uint64_t hash;         // of what it means
  std::array<char, 56> text;  // as it was found, cut to fit
};
// By Id; what may differ is left empty.
struct AllTold {
  std::array<Told, options> of;
};

AllTold tell() noexcept;

// Pure: Error(argument) for the first setting that two ranks have otherwise, the same on every
// rank: it names the variable, both values and both ranks. Nothing where all are the same.
void require_same(std::span<const AllTold> ranks);

}  // namespace ropewalk::settings
