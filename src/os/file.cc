#include "os/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace ropewalk::os {

void Descriptor::reset(int number) noexcept {
  if (number_ >= 0) {
    const int kept = errno;
    close(number_);
    errno = kept;
  }
  number_ = number;
}

std::optional<std::string> read_text(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text;
  char part[4096];
  while (true) {
    const ssize_t got = read(file.get(), part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(part, static_cast<std::size_t>(got));
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::optional<std::uint64_t> read_number(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return std::nullopt;
  std::uint64_t value = 0;
  const auto result = std::from_chars(text->data(), text->data() + text->size(), value);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

bool write_text(const std::string& path, const std::string& text) noexcept {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return false;
  return write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::string error_text(int number) {
  const char* description = strerrordesc_np(number);
  const char* symbol = strerrorname_np(number);
  if (description == nullptr || symbol == nullptr) return "errno " + std::to_string(number);
  return std::string(description) + " (" + symbol + ")";
}

Error system_error(const std::string& place, int number) {
  return Error(ErrorCode::system, place + ": " + error_text(number));
}

}  // namespace ropewalk::os
