// One-sided communication of the program, which MPI's own collectives progress as well.
#pragma once

namespace ropewalk::preload {

// Set for good when the program makes its first window.
extern bool windows_made;

// The program makes a window that others reach through MPI.
void note_window() noexcept;

// Progresses MPI at the end of a served call: a program may test a window or probe for a message
// only once after a barrier, and rely on everything from before the barrier. Some 0.1 us, so that
// only the barrier does it where there are no windows.
void progress() noexcept;

}  // namespace ropewalk::preload
