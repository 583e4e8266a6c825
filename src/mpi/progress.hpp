// Progress of the MPI underneath, for ranks that wait for something else.
//
// A rank that waits inside ropewalk must let MPI move what is under way: messages, one-sided
// traffic, nonblocking collectives, on whatever communicator. MPIs make progress in a probe only
// where the probe finds no message (seen in MPICH 5.0, Open MPI 5.0 and Intel MPI 2021), so a
// program's message that nobody has received yet would stop all progress. What cannot match is a
// test of a generalised request (MPI 4.1, 13.2) that is not complete: all MPIs then look at
// everything that is under way, and its cost does not depend on what lies unreceived.
#pragma once

namespace ropewalk::mpi {

// One look of MPI at all that is under way: 0.04 to 0.3 us where there is nothing to do. May be
// called by several threads under MPI_THREAD_MULTIPLE: while one looks, the others return at once.
void progress();

// From now on progress() calls `look` first, which moves what only its owner knows of. There are
// two such functions in a process at most; neither is called again while one runs in the same
// thread.
void progress_also(void (*look)() noexcept) noexcept;
// Calls those functions by themselves, for waits whose own tests make MPI's progress.
void look_also() noexcept;

// The program has made windows that other ranks reach through MPI: their operations take about a
// microsecond, so ranks that wait must not sleep. Stays set.
void expect_one_sided() noexcept;
bool one_sided_expected() noexcept;

}  // namespace ropewalk::mpi
