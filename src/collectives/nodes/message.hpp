// A small message between nodes: a payload behind its header.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "collectives/nodes/traffic.hpp"

namespace ropewalk::collectives::nodes {

class Message {
 public:
  Message(const Header& header, std::size_t bytes) : bytes_(sizeof(Header) + bytes) {
    if (bytes_ > few_.size()) more_.resize(bytes_);
    std::memcpy(data(), &header, sizeof header);
  }
  std::byte* data() { return bytes_ > few_.size() ? more_.data() : few_.data(); }
  std::byte* payload() { return data() + sizeof(Header); }
  std::size_t bytes() const { return bytes_; }
  Header header() {
    Header found;
    std::memcpy(&found, data(), sizeof found);
    return found;
  }

 private:
  std::size_t bytes_;
  std::array<std::byte, 1024> few_;  // not set: only what is used is written
  std::vector<std::byte> more_;
};

}  // namespace ropewalk::collectives::nodes
