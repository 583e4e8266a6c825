#include "c_call.hpp"

#include <cstdio>

namespace ropewalk {
namespace {

// Fixed size: an error about memory must not need memory.
constexpr std::size_t text_bytes = 1024;
thread_local char last_error[text_bytes] = "";

}  // namespace

int record_error(ErrorCode code, const char* text) noexcept {
  std::snprintf(last_error, text_bytes, "%s", text);
  return static_cast<int>(code);
}

}  // namespace ropewalk

extern "C" {

const char* rw_last_error(void) { return ropewalk::last_error; }
const char* rw_version(void) { return ROPEWALK_VERSION; }
}
