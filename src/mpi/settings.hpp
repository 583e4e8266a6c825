// Settings that must be the same on all ranks (settings/shared.hpp), compared between ranks; and
// whether the machine of each rank is that of the profile (topology/signature.hpp).
#pragma once

#include <cstdint>
#include <span>

#include "mpi/mpi.hpp"

namespace ropewalk::mpi {

// Returns a fingerprint of this rank's settings as they are now: settings::fingerprint(), and why
// its machine refuses the profile, where it does. Ranks whose machines refuse it for the same
// reason are alike: they all go by the defaults.
std::uint64_t settings_fingerprint() noexcept;

// Takes settings_fingerprint() of every rank, which ranks exchange together with other facts:
// costs nothing where all are the same. Else collective, on all ranks since all have the same
// numbers: Error(argument) on every rank, which names the setting, two values and their ranks.
void require_same_settings(Comm comm, std::span<const std::uint64_t> fingerprints);

}  // namespace ropewalk::mpi
