// Which of this host's addresses the ranks of other nodes are told.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "os/network.hpp"

namespace ropewalk::without_mpi {

// Returns the addresses of the interfaces that `wish` names ("ib0,eth1"), in its order. With an
// empty wish it returns those of all interfaces but loopback, the fastest first; an interface whose
// driver tells no speed comes after those that do. Throws Error(argument) where a named interface
// does not exist, is down or has no address.
std::vector<os::Address> addresses_of(std::span<const os::Interface> interfaces,
                                      std::string_view wish);

// The same for this host and ROPEWALK_INTERFACE.
std::vector<os::Address> addresses_to_offer();

}  // namespace ropewalk::without_mpi
