// This check finds out whether a process can promise to understand a descriptor in every receive
// that it makes.
//
// The drop-in takes nearly all receiving and completing functions, by both of their names. A
// process does not promise where one of its objects imports another way to receive, and is sent
// MPI's own messages. An object that is loaded later finds guards in the place of most of these
// (message_guards.cc).
#pragma once

#include <string>

namespace ropewalk::preload::messages {

// Says why this process cannot promise, judged by what its objects import; the text is empty where
// it can.
std::string obstacle_to_promise();

// Says whether an object of this process imports MPI_Probe or MPI_Iprobe, in C or in Fortran.
bool imports_probe() noexcept;

}  // namespace ropewalk::preload::messages
