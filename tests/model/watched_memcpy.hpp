// Included before everything else in the code under test, whose memcpy the model watches.
#pragma once

#include <cstring>

extern "C" void* watched_memcpy(void* to, const void* from, std::size_t bytes) noexcept;
namespace std {
using ::watched_memcpy;  // the code says std::memcpy
}
#define memcpy watched_memcpy
#define ROPEWALK_WATCHED  // no copies by instructions of our own
