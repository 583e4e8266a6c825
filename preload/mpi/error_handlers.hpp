// A request may fail after its communicator was freed, when the communicator's handle stands for
// nothing, or for another. Its error goes to the same error handler all the same.
#pragma once

#include "functions.hpp"

namespace ropewalk::preload::messages {

// Returns a communicator of this process alone that has the error handler of `comm`, and lasts as
// long as MPI. There is one for each error handler.
Word with_handler_of(Word comm) noexcept;

}  // namespace ropewalk::preload::messages
