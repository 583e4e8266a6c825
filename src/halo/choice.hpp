// Strategy::automatic: a short measurement that all ranks share.
#pragma once

#include "halo/draft.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/endpoint.hpp"

namespace ropewalk::halo {

// Collective. Runs the messages of the draft a few times with each strategy the endpoints allow on
// every rank and returns the one whose slowest rank was fastest, the same on all ranks. The
// caller's memory is read, by packing, but never written: messages in place are measured on scratch
// memory of the same sizes. Strategy::direct is no candidate: it makes a promise about what ranks
// do between start and wait that only the caller can give (halo.hpp).
Strategy fastest(mpi::Comm, EndpointSet&, const Draft&);

}  // namespace ropewalk::halo
