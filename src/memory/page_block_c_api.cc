// This file is the C interface of page blocks.
#include <cstddef>
#include <string>

#include "c_call.hpp"
#include "c_struct.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/page_block.h"

struct rw_page_block {
  ropewalk::PageBlock block;
};

namespace ropewalk {
namespace {

[[noreturn]] void refuse(const char* member, int found, const char* expected) {
  throw Error(ErrorCode::argument, std::string("options.") + member + ": found " +
                                       std::to_string(found) + ", expected one of " + expected);
}

PagePolicy policy_of(int pages) {
  switch (pages) {
    case RW_PAGES_PREFER:
      return PagePolicy::prefer;
    case RW_PAGES_REQUIRE:
      return PagePolicy::require;
    case RW_PAGES_NEVER:
      return PagePolicy::never;
    default:
      refuse("pages", pages, "RW_PAGES_*");
  }
}

std::optional<MemoryKind> kind_of(int kind) {
  switch (kind) {
    case RW_MEMORY_ANY:
      return std::nullopt;
    case RW_MEMORY_DDR:
      return MemoryKind::ddr;
    case RW_MEMORY_HBM:
      return MemoryKind::hbm;
    case RW_MEMORY_CXL:
      return MemoryKind::cxl;
    default:
      refuse("kind", kind, "RW_MEMORY_*");
  }
}

MemoryOptions options_of(const rw_memory_options* given) {
  constexpr std::size_t oldest = offsetof(rw_memory_options, kind) + sizeof(int);
  rw_memory_options options = RW_MEMORY_OPTIONS_INIT;
  if (given != nullptr) {
    options = read_struct(given, oldest, options, "options", "rw_memory_options");
  }
  MemoryOptions result;
  result.pages = policy_of(options.pages);
  if (options.node != -1) result.node = options.node;
  result.kind = kind_of(options.kind);
  return result;
}

}  // namespace
}  // namespace ropewalk

extern "C" {

int rw_page_block_create(size_t bytes, const rw_memory_options* options, rw_page_block** out) {
  return ropewalk::c_call([&] {
    ropewalk::require_argument(out, "out");
    *out = new rw_page_block{ropewalk::PageBlock(bytes, ropewalk::options_of(options))};
  });
}

int rw_page_block_data(const rw_page_block* block, void** out) {
  return ropewalk::c_call([&] {
    ropewalk::require_argument(block, "block");
    ropewalk::require_argument(out, "out");
    *out = block->block.data();
  });
}

int rw_page_block_free(rw_page_block* block) {
  return ropewalk::c_call([&] { delete block; });
}
}
