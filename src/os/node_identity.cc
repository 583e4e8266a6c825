#include "os/node_identity.hpp"

#include <unistd.h>

#include "os/file.hpp"

namespace ropewalk::os {

std::string kernel_identity() {
  static const std::string identity =
      read_text("/proc/sys/kernel/random/boot_id").value_or("unknown-boot");
  return identity;
}

std::string node_identity() {
  std::string identity = kernel_identity();
  for (const char* space : {"pid", "net"}) {
    char link[64];  // "pid:[4026531836]"
    const std::string path = std::string("/proc/self/ns/") + space;
    const ssize_t length = readlink(path.c_str(), link, sizeof link);
    identity += ' ';
    identity += length > 0 ? std::string(link, static_cast<std::size_t>(length)) : space;
  }
  return identity;
}

}  // namespace ropewalk::os
