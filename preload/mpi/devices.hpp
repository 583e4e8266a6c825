// Whether programs may pass the memory of a device (GPU) to MPI, which ropewalk cannot read.
#pragma once

#include <string>

namespace ropewalk::preload {

// Why a buffer of this process may be a device's: its runtime is loaded, and the MPI is aware of
// it. Empty: none can be, or the user says that there are none (ROPEWALK_DEVICE_BUFFERS=0). Local.
std::string device_memory();

}  // namespace ropewalk::preload
