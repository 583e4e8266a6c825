// At which of its addresses a process is reached: each is asked whether it leads to that process.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node/monitored_process.hpp"
#include "os/network.hpp"
#include "without_mpi/wire.hpp"

namespace ropewalk::without_mpi {

inline constexpr char answer_yes = 'y';

// Asks all addresses at once. Returns the first in their order that leads to the wanted process,
// but waits for a better one only for a moment when another has answered. Returns nothing where
// none does, and then says why not in `failures`.
std::optional<os::Address> best_address(std::span<const os::Address> addresses,
                                        const node::Contact& wanted, int own_rank,
                                        std::string& failures);

// ---- for connections of both kinds

std::vector<std::byte> bytes_of(const Greeting&, const std::string& name);
// Sends what fits the buffer of a new connection. Returns false where it has failed.
bool send_all(const os::Descriptor& socket, const std::vector<std::byte>& bytes);
// Returns false where the time has passed, or a signal has come.
bool wait_for(std::span<pollfd> sockets, std::int64_t until_ns);

}  // namespace ropewalk::without_mpi
