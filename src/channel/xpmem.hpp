// XPMEM: the kernel module with which Hashmi et al. 2018 make buffers of other ranks addressable.
//
// The module is called through /dev/xpmem by ioctl, so that nothing need be installed to build
// ropewalk, and one binary runs with and without the module. Each process offers its whole address
// space, as MPI libraries do, to processes of the same user (mode 0600).
//
// ropewalk relies on this behaviour:
// - Attaching maps addresses, not pages. A page comes when it is first touched here: the module
//   then looks up what the owner has at that address, and pins it.
// - The module watches the owner's address space (an MMU notifier). When the owner unmaps memory,
//   or a page of it is replaced as after fork(), our page is unmapped and let go; the next touch
//   finds what the owner has there by then. So an attachment may outlive the memory it was made
//   for, and is valid again when the owner maps other memory at the same address: a registration
//   cache needs no message from the owner's allocator.
// - Touching an address where the owner has nothing raises SIGBUS. That happens only if the buffer
//   of a call does not exist, or if its owner dies while others touch its memory: unlike the pages
//   of an arena, attached memory vanishes with its owner. ROPEWALK_XPMEM=off is for programs that
//   must survive the death of a rank.
// - Device memory mapped by the owner cannot be attached (SIGBUS as well).
//
// The module forgets all that a process attached as soon as that process closes any descriptor of
// /dev/xpmem, such as one of an MPI that uses XPMEM itself. So the device is opened once, and never
// closed before the process ends.
#pragma once

#include <memory>

#include "channel/provider.hpp"

namespace ropewalk::channel {

inline constexpr const char* xpmem_device = "/dev/xpmem";

// ioctl, or what a test has instead.
using Control = int (*)(int file, unsigned long command, void* argument);

// Opens nothing before it is used. The arguments are for tests.
std::unique_ptr<Provider> make_xpmem(std::string device = xpmem_device, Control control = nullptr);

}  // namespace ropewalk::channel
