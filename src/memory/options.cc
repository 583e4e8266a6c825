#include "memory/options.hpp"

#include <array>

#include "memory/mechanism.hpp"
#include "settings/value.hpp"

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
  throw Error(ErrorCode::argument, argument + ": found \"" + text + "\", expected one of " + names);
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

std::optional<std::size_t> environment_arena_bytes() {
  const settings::Value value = settings::get(settings::Id::arena_bytes);
  if (value.is("auto")) return std::nullopt;
  return static_cast<std::size_t>(value.number);
}

MemoryOptions environment_options() {
  MemoryOptions options;
  options.pages = page_policy(std::string(settings::get(settings::Id::pages).word));
  return options;
}

ForkPolicy environment_fork_policy() {
  const bool refuses = settings::get(settings::Id::fork).is("refuse");
  return refuses ? ForkPolicy::refuse : ForkPolicy::copy;
}

}  // namespace memory
}  // namespace ropewalk
