#include "fortran_files.hpp"

#include <dlfcn.h>
#include <link.h>

namespace ropewalk::preload {

std::vector<std::string> loaded_files() {
  std::vector<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        if (info->dlpi_name != nullptr && *info->dlpi_name != '\0') {
          static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
        }
        return 0;
      },
      &files);
  return files;
}

void* symbol_in(const std::string& file, const char* name) noexcept {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* symbol = dlsym(handle, name);
  dlclose(handle);  // it stays: it was loaded before
  return symbol;
}

FileOf file_of(const void* address) noexcept {
  Dl_info info{};
  if (address == nullptr || dladdr(address, &info) == 0) return {};
  return {info.dli_fbase, info.dli_fname == nullptr ? "" : info.dli_fname};
}

}  // namespace ropewalk::preload
