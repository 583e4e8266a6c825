// The text at the beginning of a NERSC file.
#pragma once

#include <string>

#include "ropewalk/lattice/nersc.hpp"

namespace ropewalk::lattice {

// The names of the enumerators in files.
const char* name(NerscData);
const char* name(NerscFloat);
int bytes_of(NerscFloat);  // a number

// Reads the header in the first bytes of a file. The text of Error(argument) begins with the path.
NerscHeader parse_nersc_header(const std::string& path, const std::string& beginning);

// The lines from BEGIN_HEADER to END_HEADER, made from the members, with the texts in `fields`.
// Throws Error(argument) for a text that would break a line.
std::string format_nersc_header(const NerscHeader&);

}  // namespace ropewalk::lattice
