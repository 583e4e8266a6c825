// Whether the drop-in serves at all.
#pragma once

namespace ropewalk::preload {

bool disabled();         // by ROPEWALK_DISABLE
void pass_everything();  // from now on: MPI is about to end

}  // namespace ropewalk::preload
