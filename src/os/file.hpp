// File descriptors that close themselves, small files of /proc and /sys, texts of errno.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "ropewalk/error.hpp"

namespace ropewalk::os {

// Owns a file descriptor. An invalid one means "could not be had"; the function that returned it
// left the reason in errno.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }

  int get() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }
  int release() noexcept { return std::exchange(number_, -1); }
  void reset(int number = -1) noexcept;  // closes what it had; errno is kept

 private:
  int number_ = -1;
};

// Returns the whole text of a small file without the trailing newline; nothing where it cannot be
// read.
std::optional<std::string> read_text(const std::string& path);
// Returns the first number in the file. "max", as cgroups write it, gives nothing.
std::optional<std::uint64_t> read_number(const std::string& path);
bool write_text(const std::string& path, const std::string& text) noexcept;

// Returns "No space left on device (ENOSPC)": it is thread-safe, and the same in every locale.
std::string error_text(int number);
// Returns Error(system) "place: text of errno".
Error system_error(const std::string& place, int number);

}  // namespace ropewalk::os
