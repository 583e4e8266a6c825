// The files that are loaded in this process.
#pragma once

#include <string>
#include <vector>

namespace ropewalk::preload {

// Paths, in the order they were loaded. The program itself, whose symbols the whole process sees,
// is not among them.
std::vector<std::string> loaded_files();

// Returns the symbol in a file, or in what it is linked to; null where it has none.
void* symbol_in(const std::string& file, const char* name) noexcept;

// Base address and path of the file that holds an address; {nullptr, ""} for none.
struct FileOf {
  const void* base = nullptr;
  const char* path = "";
};
FileOf file_of(const void* address) noexcept;

}  // namespace ropewalk::preload
