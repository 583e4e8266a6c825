#include "memory/options.hpp"

#include <array>

#include "memory/numa_placement.hpp"
#include "settings/value.hpp"

namespace ropewalk {
namespace {

constexpr std::array<PageSource, 8> sources{
    PageSource::hugetlb_1g_memfd,  PageSource::hugetlb_memfd,
    PageSource::shmem_huge,        PageSource::shmem_small,
    PageSource::anonymous_hugetlb, PageSource::hugetlbfs_file,
    PageSource::memalign,          PageSource::thp};
constexpr std::array<MemoryKind, 3> kinds{MemoryKind::ddr, MemoryKind::hbm, MemoryKind::cxl};
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
    case PageSource::thp:
      return "thp";
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

const char* name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::ddr:
      return "ddr";
    case MemoryKind::hbm:
      return "hbm";
    case MemoryKind::cxl:
      return "cxl";
  }
  return "unknown";
}

PageSource page_source(const std::string& text) {
  return find_by_name("page source", sources, text);
}
PagePolicy page_policy(const std::string& text) {
  return find_by_name("page policy", policies, text);
}

MemoryKind memory_kind(const std::string& text) { return find_by_name("memory kind", kinds, text); }

namespace memory {
namespace {

// Reads ROPEWALK_MEMORY, and makes sure that this machine has what it names.
void read_memory(MemoryOptions& options) {
  const settings::Value value = settings::get(settings::Id::memory);
  if (value.is("auto")) return;
  if (value.word.empty()) {
    options.node = static_cast<int>(value.number);
  } else {
    options.kind = memory_kind(std::string(value.word));
  }
  const NumaPlacement possible(options, "ROPEWALK_MEMORY");
}

}  // namespace

std::optional<std::size_t> environment_arena_bytes() {
  const settings::Value value = settings::get(settings::Id::arena_bytes);
  if (value.is("auto")) return std::nullopt;
  return static_cast<std::size_t>(value.number);
}

MemoryOptions environment_options() {
  MemoryOptions options;
  options.pages = page_policy(std::string(settings::get(settings::Id::pages).word));
  read_memory(options);
  return options;
}

ForkPolicy environment_fork_policy() {
  const bool refuses = settings::get(settings::Id::fork).is("refuse");
  return refuses ? ForkPolicy::refuse : ForkPolicy::copy;
}

}  // namespace memory
}  // namespace ropewalk
