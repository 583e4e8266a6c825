// A file that all ranks read from or write to at offsets of their own. Errors name the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ropewalk::lattice {

class SharedFile {
 public:
  enum class Mode { read, create, write };  // create: the file must not be there yet
  // Throws Error(system) where it cannot be opened.
  SharedFile(std::string path, Mode);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  std::uint64_t size() const;
  // All of the bytes: Error(argument) where the file ends before, Error(system) where it fails.
  void read(void* data, std::size_t bytes, std::uint64_t offset) const;
  std::size_t read_some(void* data, std::size_t bytes) const;  // from the start: what there is
  void write(const void* data, std::size_t bytes, std::uint64_t offset);
  void close_on_disk();  // what was written is on disk; Error(system) where it did not get there

 private:
  std::string path_;
  int descriptor_;
};

// Both report the path that fails. Rename puts the new name on disk.
void rename_file(const std::string& from, const std::string& to);
void remove_file(const std::string& path) noexcept;

}  // namespace ropewalk::lattice
