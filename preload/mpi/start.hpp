// Whether the drop-in serves at all.
#pragma once

namespace ropewalk::preload {

bool disabled();         // by ROPEWALK_DISABLE
void pass_everything();  // from now on: MPI is about to end
// The same, behind the statistics, for which all ranks meet.
void end_serving() noexcept;

}  // namespace ropewalk::preload
