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
// it can.
std::string obstacle_to_promise();
// Says why it cannot do so without a lock although MPI_Init was told that one thread at a time
// calls MPI: it may make a session, whose thread level is its own.
std::string obstacle_without_lock();
// Says whether requests are completed by functions that the drop-in takes alone, and by one thread
// at a time, or by threads that the lock keeps apart. It is found out once, after MPI_Init.
bool completes_by_us() noexcept;
// Says why the lock of messages would not do where several threads call MPI: they are not the
// system's, or MPI itself keeps those apart only that use one communicator. The text is empty where
// it would.
std::string obstacle_to_lock();

}  // namespace ropewalk::preload::messages
