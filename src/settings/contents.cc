#include "settings/contents.hpp"

#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>

#include "os/file.hpp"

namespace ropewalk::settings {
namespace {

// A device has no size, so it cannot be read for ever.
Contents read_file(const std::string& path) {
  std::error_code problem;
  const std::uintmax_t bytes = std::filesystem::file_size(path, problem);
  if (problem) return {"", os::error_text(problem.value())};
  if (bytes > largest_file) return {"", "larger than 1 MiB"};
  std::optional<std::string> text = os::read_text(path);
  if (!text) return {"", os::error_text(errno)};
  return {*std::move(text), ""};
}

}  // namespace

const Contents& contents(std::string_view path) {
  static std::mutex mutex;
  static std::map<std::string, Contents, std::less<>> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(path);
  if (found != known.end()) return found->second;
  std::string name(path);
  Contents read = read_file(name);
  return known.emplace(std::move(name), std::move(read)).first->second;
}

}  // namespace ropewalk::settings
