// Collectives that the program has dropped before they were complete, as a coroutine does that is
// cancelled. The other ranks take part in them, so they cannot be taken back; to wait for them
// would stop the program, and its event loop, until the last rank comes.
#pragma once

#include <memory>

#include "_both_sides.hpp"
#include "_completion.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::python {

// Keeps a collective and its arrays until it is complete. The caller holds the GIL, as below.
void keep_until_complete(CollectiveRequest, std::shared_ptr<Completion>, Buffers);
// Ends those that are complete. Every call of a communicator does this first.
void tidy_left_collectives();

}  // namespace ropewalk::python
