// This check finds out whether a process can promise to understand a descriptor in every receive
// that it makes.
//
// The drop-in takes the receiving and completing functions that most programs use. A process that
// could receive by any other way does not promise, and is sent MPI's own messages. Such a process
// has objects that import a probe, another way to receive, a receiving function by its PMPI name or
// Fortran's names, or it may load such objects later.
#pragma once

#include <string>

namespace ropewalk::preload::messages {

// Says why this process cannot promise, judged by what its objects import; the text is empty where
// it can. `before_init` says that MPI has loaded none of its plug-ins yet, so that the check looks
// for whatever can load objects, too.
std::string obstacle_to_promise(bool before_init);

}  // namespace ropewalk::preload::messages
