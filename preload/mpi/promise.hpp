// Whether this process can promise to understand a descriptor in every receive that it makes.
//
// The drop-in takes the receiving and completing functions that most programs use. A process that
// could receive by any other way does not promise, and is sent MPI's own messages: one whose
// objects import a probe, another way to receive, a receiving function by its PMPI name, Fortran's
// names, or one that may load such objects later.
#pragma once

#include <string>

namespace ropewalk::preload::messages {

// Why this process cannot promise, by what its objects import; empty: it can. `before_init`: MPI
// has loaded none of its plug-ins yet, so whatever can load objects is looked at, too.
std::string obstacle_to_promise(bool before_init);

}  // namespace ropewalk::preload::messages
