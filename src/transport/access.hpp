// What rooms above need of an endpoint set beyond its public face.
#pragma once

#include <memory>

#include "ropewalk/endpoint.hpp"
#include "transport/lane_set.hpp"

namespace ropewalk::transport {

struct Access {
  // Whoever keeps it keeps communicators, threads and team alive, as a plan does.
  static std::shared_ptr<LaneSet> lanes(const EndpointSet& endpoints);
};

}  // namespace ropewalk::transport
