// What a halo of the C interface holds, for the rooms above that take one.
#pragma once

#include "ropewalk/halo.hpp"

struct rw_halo {
  ropewalk::Halo halo;
};
