// What rooms above need of an endpoint set beyond its public face.
#pragma once

#include <memory>
#include <vector>

#include "ropewalk/endpoint.hpp"
#include "transport/lane_set.hpp"

namespace ropewalk::transport {

struct Access {
  // Returns an object that holds it keeps communicators, threads and team alive, as a plan does.
  static std::shared_ptr<LaneSet> lanes(const EndpointSet& endpoints);
  // Does what EndpointSet::plan does, with messages whose tags are of LaneSet::tags().
  static MessagePlan plan(const EndpointSet& endpoints, const std::vector<Message>& messages);
};

}  // namespace ropewalk::transport
