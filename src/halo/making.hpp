// How a halo is made: facts are gathered, a carrier is chosen from them, and then it is made.
#pragma once

#include "halo/parts.hpp"
#include "halo/request.hpp"

namespace ropewalk::halo {

// Collective, inside of collectively() over the grid's communicator. Afterwards, when all ranks
// have theirs, Carrier::settle() is to be called.
HaloParts make_parts(HaloRequest request);

}  // namespace ropewalk::halo
