// This check finds out whether a process can promise to understand a descriptor in every receive
// that it makes.
//
// The drop-in takes all receiving and completing functions of the standard, by both of their names.
// A process does not promise where one of its objects imports another way to receive, and is sent
// MPI's own messages.
#pragma once

#include <string>

namespace ropewalk::preload::messages {

// Says why this process cannot promise, judged by what its objects import; the text is empty where
// it can. `locked` says that its threads may call MPI at the same time, for which messages then
// hold a lock.
std::string obstacle_to_promise(bool locked);

// Says whether an object of this process imports MPI_Probe or MPI_Iprobe, in C or in Fortran.
bool imports_probe() noexcept;

}  // namespace ropewalk::preload::messages
