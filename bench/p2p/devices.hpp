// Messages from and to memory of CUDA devices. This program loads the driver's library for its
// buffers, as one does that uses devices; where there is none, the rows say so.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "p2p/tables.hpp"

namespace ropewalk::bench {

// Memory of the device with the number of this rank on its node, or of the first one.
class DeviceBuffer {
 public:
  // Returns why there is none, and nothing where there is.
  static std::string missing();

  DeviceBuffer(std::size_t bytes, int node_rank);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  std::byte* data() const noexcept;
  void write(std::span<const std::byte> from);
  void read(std::span<std::byte> into) const;

 private:
  unsigned long long address_ = 0;  // CUdeviceptr
};

// Collective. Returns a row for each size: half of a ping-pong through a channel, from device to
// device, hot buffers. Where a rank has no device there is one row, whose `skipped` says so.
std::vector<Json> device_rows(const P2pOptions& options, const Ranks& ranks);
// Returns these rows as lines of text.
std::string device_table(const std::vector<Json>& rows);

}  // namespace ropewalk::bench
