// The text at the beginning of a NERSC file.
#pragma once

#include <string>

#include "ropewalk/lattice/nersc.hpp"

namespace ropewalk::lattice {

// What the enumerators are called in files.
const char* name(NerscData);
const char* name(NerscFloat);
int bytes_of(NerscFloat);  // a number

// Of the first bytes of a file. Error(argument) begins with the path.
NerscHeader parse_nersc_header(const std::string& path, const std::string& beginning);

// BEGIN_HEADER to END_HEADER, of the members; `fields` gives the texts. Error(argument) for a text
// that would break the lines of the header.
std::string format_nersc_header(const NerscHeader&);

}  // namespace ropewalk::lattice
