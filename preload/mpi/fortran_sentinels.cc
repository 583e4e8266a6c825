#include "fortran_sentinels.hpp"

#include <dlfcn.h>

#include <string>

#include "fortran_files.hpp"

namespace ropewalk::preload::fortran {

bool Sentinel::add(const void* address) {
  if (address == nullptr || is(address)) return true;
  if (count_ == addresses_.size()) return false;
  addresses_[count_++] = address;
  return true;
}

// A variable that the whole process sees is the same for everybody. If there is none, the MPI was
// loaded by a plug-in for itself: the variable that its files agreed on is one of those loaded, and
// the others are nobody's buffers.
bool Sentinel::find(const char* name, const char* NAME) {
  const std::string base = name;
  const std::array<std::string, 4> names{base + "_", base + "__", base, NAME};
  for (const std::string& mangled : names) {
    if (!add(dlsym(RTLD_DEFAULT, mangled.c_str()))) return false;
  }
  if (count_ > 0) return true;
  for (const std::string& file : loaded_files()) {
    for (const std::string& mangled : names) {
      if (!add(symbol_in(file, mangled.c_str()))) return false;
    }
  }
  return count_ > 0;
}

}  // namespace ropewalk::preload::fortran
