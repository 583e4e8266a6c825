// The functions that a loaded library imports. The dynamic linker keeps the address of each in
// tables of that library, where another function can take its place: for this library alone, and
// without a change of its code.
#pragma once

#include <cstddef>
#include <string_view>

namespace ropewalk::os {

// From now on the library, which `library` names as its file, calls `replacement` wherever it
// imports `function`. Returns the number of places; 0 where no such library is loaded, or where it
// does not import the function. Other threads may call the function meanwhile: they reach the one
// or the other. Throws Error(system) where the kernel does not let a table be written.
std::size_t replace_import(std::string_view library, std::string_view function, void* replacement);

}  // namespace ropewalk::os
