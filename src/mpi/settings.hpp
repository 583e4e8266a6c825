// Settings that must be the same on all ranks (settings/shared.hpp), compared between ranks.
#pragma once

#include <cstdint>
#include <span>

#include "mpi/mpi.hpp"

namespace ropewalk::mpi {

// Takes settings::fingerprint() of every rank, which ranks exchange together with other facts:
// costs nothing where all are the same. Else collective, on all ranks since all have the same
// numbers: Error(argument) on every rank, which names the setting, two values and their ranks.
void require_same_settings(Comm comm, std::span<const std::uint64_t> fingerprints);

}  // namespace ropewalk::mpi
