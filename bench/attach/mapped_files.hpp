// Memory of other processes by the files behind it: what ropewalk does instead of XPMEM, taken
// apart into the same steps.
#pragma once

#include <cstddef>

namespace ropewalk::bench {

struct FileName {
  int process = 0;
  int descriptor = -1;
};

// A memfd of this process, mapped here, and the name under which others ask for it. The file is
// kept until the end.
class OfferedFile {
 public:
  // Throws Error(memory) where there is none.
  explicit OfferedFile(std::size_t bytes);
  ~OfferedFile();
  OfferedFile(const OfferedFile&) = delete;
  OfferedFile& operator=(const OfferedFile&) = delete;

  std::byte* data() const noexcept { return data_; }
  FileName name() const noexcept;

 private:
  std::size_t bytes_;
  int file_;
  std::byte* data_;
};

// Such a file of another process, opened by /proc and mapped here.
class AttachedFile {
 public:
  explicit AttachedFile(FileName name);
  ~AttachedFile();
  AttachedFile(const AttachedFile&) = delete;
  AttachedFile& operator=(const AttachedFile&) = delete;

  // Maps the file; null where the kernel refuses.
  std::byte* attach(std::size_t bytes);
  void detach() noexcept;

 private:
  int file_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace ropewalk::bench
