// Reads registration traces, as ROPEWALK_REGISTRATION_TRACE writes them.
#pragma once

#include <string>
#include <vector>

#include "ropewalk/registration.hpp"

namespace ropewalk::bench {

// Throws Error(argument) where the file cannot be read, or is no trace.
std::vector<RegistrationRequest> read_trace(const std::string& file);

}  // namespace ropewalk::bench
