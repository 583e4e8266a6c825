// Structs of the C interface begin with their own size, so that they can grow: a program and the
// library may know headers of different age.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "ropewalk/error.hpp"

namespace ropewalk {

// No later version of a struct can have grown by more than this: a larger size was never set.
inline constexpr std::size_t most_growth = 256;  // bytes

inline void check_struct_size(std::size_t given, std::size_t oldest, std::size_t newest,
                              const std::string& name, const char* type) {
  if (given >= oldest && given <= newest + most_growth) return;
  throw Error(ErrorCode::argument, name + ".size: " + std::to_string(given) + ", expected sizeof(" +
                                       type + "), " + std::to_string(newest) +
                                       "; begin with its INIT macro");
}

inline std::size_t struct_size(const void* given) {
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  return size;
}

// Reads what a program has set. Members that its older header lacks keep the defaults; those that
// this library does not know must be zero. `oldest` is the size of the struct's first version.
template <class Struct>
Struct read_struct(const void* given, std::size_t oldest, Struct defaults, const std::string& name,
                   const char* type) {
  const std::size_t size = struct_size(given);
  check_struct_size(size, oldest, sizeof(Struct), name, type);
  std::memcpy(&defaults, given, std::min(size, sizeof(Struct)));
  const auto* bytes = static_cast<const unsigned char*>(given);
  const auto set = [](unsigned char byte) { return byte != 0; };
  if (size > sizeof(Struct) && std::any_of(bytes + sizeof(Struct), bytes + size, set)) {
    throw Error(ErrorCode::unsupported,
                name + ": has members that this library does not know, expected those of " + type +
                    " in its own header; update the library, or leave them zero");
  }
  return defaults;
}

// Writes a result into the program's struct, whose size has been checked and stays: as many members
// as its header has, and zeros where that is newer.
template <class Struct>
void write_struct(void* given, Struct result) {
  const std::size_t size = struct_size(given);
  result.size = size;
  std::memcpy(given, &result, std::min(size, sizeof(Struct)));
  if (size > sizeof(Struct)) {
    std::memset(static_cast<std::byte*>(given) + sizeof(Struct), 0, size - sizeof(Struct));
  }
}

}  // namespace ropewalk
