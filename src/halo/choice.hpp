// Strategy::automatic: a short measurement that all ranks share.
#pragma once

#include "halo/direct.hpp"
#include "halo/draft.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/endpoint.hpp"

namespace ropewalk::halo {

// Collective. Runs the messages of the draft a few times with each strategy the endpoints allow on
// every rank, and the direct exchange where there is one, and returns the one whose slowest rank
// was fastest, the same on all ranks. The caller's memory is read, by packing and by direct
// exchanges, but never written: messages in place are measured on scratch memory of the same sizes,
// and what direct exchanges bring goes to scratch memory, too.
Strategy fastest(mpi::Comm, EndpointSet&, const Draft&, Direct* direct);

}  // namespace ropewalk::halo
