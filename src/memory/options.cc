#include "memory/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "memory/mechanism.hpp"

namespace ropewalk {
namespace {

constexpr std::array<PageSource, 7> sources{
    PageSource::hugetlb_1g_memfd, PageSource::hugetlb_memfd,     PageSource::shmem_huge,
    PageSource::shmem_small,      PageSource::anonymous_hugetlb, PageSource::hugetlbfs_file,
    PageSource::memalign};
constexpr std::array<PagePolicy, 3> policies{PagePolicy::require, PagePolicy::prefer,
                                             PagePolicy::never};

template <class Values>
auto find_by_name(const std::string& argument, const Values& values, const std::string& text) {
  std::string names;
  for (const auto value : values) {
    if (text == name(value)) return value;
    names += names.empty() ? "" : ", ";
    names += name(value);
  }
  throw Error(ErrorCode::argument, argument + ": found \"" + text + "\"; expected one of " + names);
}

}  // namespace

const char* name(PageSource source) {
  switch (source) {
    case PageSource::hugetlb_1g_memfd:
      return "hugetlb-1g-memfd";
    case PageSource::hugetlb_memfd:
      return "hugetlb-memfd";
    case PageSource::shmem_huge:
      return "shmem-huge";
    case PageSource::shmem_small:
      return "shmem-small";
    case PageSource::anonymous_hugetlb:
      return "anonymous-hugetlb";
    case PageSource::hugetlbfs_file:
      return "hugetlbfs-file";
    case PageSource::memalign:
      return "memalign";
  }
  return "unknown";
}

const char* name(PagePolicy policy) {
  switch (policy) {
    case PagePolicy::require:
      return "require";
    case PagePolicy::prefer:
      return "prefer";
    case PagePolicy::never:
      return "never";
  }
  return "unknown";
}

PageSource page_source(const std::string& text) {
  return find_by_name("page source", sources, text);
}
PagePolicy page_policy(const std::string& text) {
  return find_by_name("page policy", policies, text);
}

namespace memory {
namespace {

std::size_t suffix_factor(std::string_view suffix) {
  constexpr std::string_view letters = "KMGT";
  if (suffix.empty() || suffix == "B") return 1;
  const auto which = letters.find(static_cast<char>(std::toupper(suffix.front())));
  const auto rest = suffix.substr(1);
  if (which == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "iB")) return 0;
  return std::size_t{1} << (10 * (which + 1));
}

}  // namespace

std::size_t parse_bytes(const std::string& argument, const std::string& text) {
  std::size_t count = 0;
  const char* end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, count);
  const std::size_t factor =
      suffix_factor(std::string_view(after, static_cast<std::size_t>(end - after)));
  if (error != std::errc() || factor == 0 || count > SIZE_MAX / factor) {
    throw Error(ErrorCode::argument,
                argument + ": found \"" + text + "\"; expected bytes, as in 4096, 512M or 2GiB");
  }
  return count * factor;
}

std::optional<std::size_t> environment_arena_bytes() {
  const char* text = std::getenv("ROPEWALK_ARENA_BYTES");
  if (text == nullptr) return std::nullopt;
  const std::size_t bytes = parse_bytes("ROPEWALK_ARENA_BYTES", text);
  if (bytes == 0) {
    throw Error(ErrorCode::argument,
                "ROPEWALK_ARENA_BYTES: found 0; expected at least 1, or unset it for 1/2 of RAM");
  }
  return bytes;
}

std::size_t environment_malloc_threshold() {
  constexpr std::size_t least = 4096;  // blocks of the arena are pages
  const char* text = std::getenv("ROPEWALK_MALLOC_THRESHOLD");
  if (text == nullptr) return default_malloc_threshold;
  if (std::strcmp(text, "off") == 0) return SIZE_MAX;
  const std::size_t bytes = parse_bytes("ROPEWALK_MALLOC_THRESHOLD", text);
  return bytes == 0 ? SIZE_MAX : std::max(bytes, least);
}

MemoryOptions environment_options() {
  MemoryOptions options;
  if (const char* text = std::getenv("ROPEWALK_PAGES")) {
    options.pages = find_by_name("ROPEWALK_PAGES", policies, text);
  }
  return options;
}

ForkPolicy environment_fork_policy() {
  const char* text = std::getenv("ROPEWALK_FORK");
  if (text == nullptr || std::strcmp(text, "copy") == 0) return ForkPolicy::copy;
  if (std::strcmp(text, "refuse") == 0) return ForkPolicy::refuse;
  throw Error(ErrorCode::argument,
              std::string("ROPEWALK_FORK: found \"") + text + "\"; expected copy or refuse");
}

}  // namespace memory
}  // namespace ropewalk
