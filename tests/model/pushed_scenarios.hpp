// Private blocks that their owners write into receive buffers that they see.
#pragma once

#include "model/rank.hpp"

namespace ropewalk::model {

void pushed_allgathers(Rank&);
void pushed_alltoall(Rank&);
void pushed_broadcasts(Rank&);  // the root must find its receiver there, else it copies
void pushed_gathers_and_scatters(Rank&);

}  // namespace ropewalk::model
