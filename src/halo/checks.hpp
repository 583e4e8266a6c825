// The checks of a request that need no other rank.
#pragma once

#include "halo/request.hpp"

namespace ropewalk::halo {

// Throws Error(argument) that names what is wrong, or Error(memory) for buffers that no memory
// could hold. It is local.
void check_request(const HaloRequest&);

}  // namespace ropewalk::halo
