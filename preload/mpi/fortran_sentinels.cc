#include "fortran_sentinels.hpp"

#include <dlfcn.h>

#include <string>

#include "fortran_files.hpp"

namespace ropewalk::preload::fortran {

bool Sentinel::add(const void* address) {
  if (address == nullptr || is(address)) return true;
  if (count_ == static_cast<std::ptrdiff_t>(addresses_.size())) return false;
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  addresses_[static_cast<std::size_t>(count_++)] = number;
  lowest_ = std::min(lowest_, number);
  highest_ = std::max(highest_, number);
  return true;
}

// Several files have such a variable; at load, the loader made all of them use one. Which one need
// not be the one that is found now (Open MPI makes its symbols global after it was loaded for a
// plug-in alone), so all count: none of them is anybody's buffer.
bool Sentinel::find(const char* name, const char* NAME) {
  const std::string base = name;
  const std::array<std::string, 4> names{base + "_", base + "__", base, NAME};
  const std::vector<std::string> files = loaded_files();
  for (const std::string& mangled : names) {
    if (!add(dlsym(RTLD_DEFAULT, mangled.c_str()))) return false;
    for (const std::string& file : files) {
      if (!add(symbol_in(file, mangled.c_str()))) return false;
    }
  }
  return count_ > 0;
}

}  // namespace ropewalk::preload::fortran
