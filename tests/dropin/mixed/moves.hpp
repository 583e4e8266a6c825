// Both kinds of blocking collectives; collectives.cc chooses between them.
#pragma once

#include "actions.hpp"

namespace mixed {

void add_move(Schedule&, const Comm&, double time);
void add_reduction(Schedule&, const Comm&, double time);

}  // namespace mixed
