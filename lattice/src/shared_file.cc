#include "shared_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "ropewalk/error.hpp"

namespace ropewalk::lattice {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what, const char* remedy) {
  const std::string reason = std::generic_category().message(errno);
  throw Error(ErrorCode::system, path + ": cannot " + what + ", " + reason + "; " + remedy);
}

int flags(SharedFile::Mode mode) {
  switch (mode) {
    case SharedFile::Mode::read:
      return O_RDONLY;
    case SharedFile::Mode::create:
      return O_WRONLY | O_CREAT | O_EXCL;
    case SharedFile::Mode::write:
      break;
  }
  return O_WRONLY;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Opening a folder makes NFS ask the server what is in it (close-to-open consistency).
void look_at_folder_of(const std::string& path) {
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) ::close(folder);
}

// A file to be written has just been created by another rank: where its folder is on a server, this
// machine may believe for a while that it is not there.
int open_file(const std::string& path, SharedFile::Mode mode) {
  constexpr int tries = 500;
  constexpr useconds_t between_us = 20'000;  // 10 s in all
  int file = ::open(path.c_str(), flags(mode) | O_CLOEXEC, 0666);
  if (mode != SharedFile::Mode::write) return file;
  for (int i = 0; file < 0 && (errno == ENOENT || errno == ESTALE) && i < tries; ++i) {
    ::usleep(between_us);
    look_at_folder_of(path);
    file = ::open(path.c_str(), flags(mode) | O_CLOEXEC, 0666);
  }
  return file;
}

}  // namespace

SharedFile::SharedFile(std::string path, Mode mode)
    : path_(std::move(path)), descriptor_(open_file(path_, mode)) {
  if (descriptor_ >= 0) return;
  if (mode == Mode::read) fail(path_, "be opened", "every rank must see the file under this path");
  fail(path_, "be written", "the folder must be there, writable, and the same for every rank");
}

SharedFile::~SharedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::uint64_t SharedFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail(path_, "be examined", "try again");
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::argument, path_ + ": is no regular file; name a file");
  }
  return static_cast<std::uint64_t>(status.st_size);
}

void SharedFile::read(void* data, std::size_t bytes, std::uint64_t offset) const {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, "be read", "check the disk and try again");
    if (got == 0) {
      throw Error(ErrorCode::argument, path_ + ": ends at byte " + std::to_string(offset) +
                                           ", inside the data; copy the file again");
    }
    to += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

std::size_t SharedFile::read_some(void* data, std::size_t bytes) const {
  const std::uint64_t all = size();
  const std::size_t some = all < bytes ? static_cast<std::size_t>(all) : bytes;
  read(data, some, 0);
  return some;
}

void SharedFile::write(const void* data, std::size_t bytes, std::uint64_t offset) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = ::pwrite(descriptor_, from, bytes, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail(path_, "be written", "make room or choose another folder");
    from += put;
    offset += static_cast<std::uint64_t>(put);
    bytes -= static_cast<std::size_t>(put);
  }
}

void SharedFile::close_on_disk() {
  if (::fsync(descriptor_) != 0) {
    fail(path_, "be put on disk", "make room or choose another folder");
  }
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(path_, "be closed", "check the disk");
}

void rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    fail(to, ("take the name of " + from).c_str(), "choose a name that is no folder");
  }
  const int folder = ::open(folder_of(to).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);  // some file systems refuse this; the file itself is on disk
  ::close(folder);
}

void remove_file(const std::string& path) noexcept { ::unlink(path.c_str()); }

}  // namespace ropewalk::lattice
