#include "settings/shared.hpp"

#include <algorithm>
#include <string>

#include "os/hash.hpp"
#include "ropewalk/error.hpp"
#include "settings/contents.hpp"
#include "settings/value.hpp"

namespace ropewalk::settings {
namespace {

bool is_number(const Value& value) noexcept {
  const Kind kind = value.option->kind;
  return value.word.empty() && (kind == Kind::count || kind == Kind::bytes);
}

// The hash of a file that cannot be read is that of its name: ranks agree on such a file only when
// it has the same name.
std::uint64_t meaning_of_file(std::string_view path) noexcept {
  if (path.empty()) return os::hash(path);
  try {
    const Contents& file = contents(path);
    return file.error.empty() ? os::hash(file.text, os::hash("file "))
                              : os::hash(path, os::hash("unreadable "));
  } catch (const std::exception&) {  // no memory for it
    return os::hash(path, os::hash("unreadable "));
  }
}

// Hashes what a value means, whichever way it is spelled. A value that cannot be understood is
// equal only to itself.
std::uint64_t meaning(const Value& value) noexcept {
  Text text;
  if (value.malformed) {
    return os::hash(value.text, os::hash("malformed "));
  }
  if (value.option->kind == Kind::file) return meaning_of_file(value.text);
  if (is_number(value)) return os::hash((text << value.number).view());
  return os::hash(value.word.empty() ? value.text : value.word);
}

Told tell(const Value& value) noexcept {
  Told told{meaning(value), {}};
  const std::size_t bytes = std::min(value.text.size(), told.text.size() - 1);
  std::copy_n(value.text.begin(), bytes, told.text.begin());
  return told;
}

std::string found(const Told& told, std::size_t rank) {
  return std::string("\"") + told.text.data() + "\" on rank " + std::to_string(rank);
}

// Says which value all ranks should have, and how they get it. Files of one name may differ, for
// instance where each node has disks of its own.
std::string remedy(const Option& option, const Told& told) {
  if (option.kind == Kind::file) return "give all of them a file with the same contents";
  const std::string name(option.name);
  return "set it for all of them, as in `ropewalk run --env " + name + "=" + told.text.data() + "`";
}

[[noreturn]] void refuse(const Option& option, const Told& first, const Told& other,
                         std::size_t rank) {
  const Told& given = *other.text.data() != '\0' ? other : first;
  throw Error(ErrorCode::argument,
              std::string(option.name) + ": found " + found(other, rank) + " and " +
                  found(first, 0) + ", expected the same on all ranks; " + remedy(option, given));
}

}  // namespace

AllTold tell() noexcept {
  AllTold all{};
  for (const Option& option : table()) {
    if (option.scope != Scope::all_ranks) continue;
    all.of[static_cast<std::size_t>(option.id)] = tell(read(option));
  }
  return all;
}

std::uint64_t fingerprint() noexcept {
  std::uint64_t all = os::hash_start;
  for (const Option& option : table()) {
    if (option.scope != Scope::all_ranks) continue;
    const std::uint64_t one = meaning(read(option));
    all = os::hash_step(all, one);
  }
  return all;
}

void require_same(std::span<const AllTold> ranks) {
  for (const Option& option : table()) {
    const auto row = static_cast<std::size_t>(option.id);
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
      const Told& first = ranks[0].of[row];
      const Told& other = ranks[rank].of[row];
      if (other.hash != first.hash) refuse(option, first, other, rank);
    }
  }
}

}  // namespace ropewalk::settings
