// What the C handle rw_endpoints points to; for the C functions of rooms above.
#pragma once

#include "ropewalk/endpoint.hpp"
#include "ropewalk/ropewalk.h"

struct rw_endpoints {
  rw_endpoints(ropewalk::Communicator communicator, const ropewalk::EndpointOptions& options)
      : set(communicator, options) {}
  ropewalk::EndpointSet set;
};
