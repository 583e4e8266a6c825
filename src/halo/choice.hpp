// Strategy::automatic: a short measurement that all ranks share.
#pragma once

#include <vector>

#include "halo/direct.hpp"
#include "halo/draft.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/endpoint.hpp"

namespace ropewalk::halo {

// Collective. Those to measure: what the endpoints allow on every rank, and `direct` where there is
// a rehearsal of it on every rank. Not `sequential`: it posts later messages in test() and wait()
// only, so that a rank that waits would need its neighbours to be there too.
std::vector<Strategy> candidates(mpi::Comm, const EndpointSet&, const Direct* rehearsal);

// Collective. Runs the messages of the draft, or the rehearsal (neighbours.hpp), a few times with
// each candidate and returns the one whose slowest rank was fastest, the same on all ranks. The
// caller's memory is read, by packing or by the rehearsal, but never written: messages in place are
// measured on scratch memory of the same sizes. So neither unpacking nor the strides of the ghosts
// are part of it.
Strategy fastest(mpi::Comm, EndpointSet&, const Draft&, Direct* rehearsal);

}  // namespace ropewalk::halo
