// Files of memory and their mappings; see mapped_files.hpp.
#include "attach/mapped_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

std::byte* mapped(int file, std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

OfferedFile::OfferedFile(std::size_t bytes)
    : bytes_(bytes), file_(memfd_create("ropewalk-bench-attach", MFD_CLOEXEC)), data_(nullptr) {
  if (file_ >= 0 && ftruncate(file_, static_cast<off_t>(bytes)) == 0) {
    data_ = mapped(file_, bytes);
  }
  if (data_ != nullptr) return;
  const int error = errno;
  if (file_ >= 0) ::close(file_);
  throw Error(ErrorCode::memory,
              fmt::format("--sizes: a file of {} bytes in memory: {}; give smaller sizes", bytes,
                          std::strerror(error)));
}

OfferedFile::~OfferedFile() {
  munmap(data_, bytes_);
  ::close(file_);
}

FileName OfferedFile::name() const noexcept { return {getpid(), file_}; }

AttachedFile::AttachedFile(FileName name)
    : file_(::open(fmt::format("/proc/{}/fd/{}", name.process, name.descriptor).c_str(),
                   O_RDWR | O_CLOEXEC)) {}

AttachedFile::~AttachedFile() {
  detach();
  if (file_ >= 0) ::close(file_);
}

std::byte* AttachedFile::attach(std::size_t bytes) {
  if (file_ >= 0) data_ = mapped(file_, bytes);
  bytes_ = bytes;
  return data_;
}

void AttachedFile::detach() noexcept {
  if (data_ != nullptr) munmap(data_, bytes_);
  data_ = nullptr;
}

}  // namespace ropewalk::bench
