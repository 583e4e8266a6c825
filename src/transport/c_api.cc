// This file is the C interface of this room.
#include <memory>

#include "c_call.hpp"
#include "mpi/c_out.hpp"
#include "transport/c_endpoints.hpp"

using ropewalk::c_call;
using ropewalk::require_argument;

extern "C" {

int rw_endpoints_create(rw_mpi_comm comm, int lanes, int threads, rw_endpoints** out) {
  return c_call([&] {
    ropewalk::mpi::require_out({comm}, out);
    ropewalk::EndpointOptions options;
    options.lanes = lanes;
    options.threads = threads != 0;
    *out = std::make_unique<rw_endpoints>(ropewalk::Communicator(comm), options).release();
  });
}

int rw_endpoints_free(rw_endpoints* endpoints) {
  return c_call([&] { delete endpoints; });
}

int rw_endpoints_lanes(const rw_endpoints* endpoints, int* out) {
  return c_call([&] {
    require_argument(endpoints, "endpoints");
    require_argument(out, "out");
    *out = endpoints->set.lanes();
  });
}

int rw_send(rw_endpoints* endpoints, int lane, const void* data, size_t bytes, int destination,
            int tag) {
  return c_call([&] {
    require_argument(endpoints, "endpoints");
    if (bytes != 0) require_argument(data, "data");
    endpoints->set.send(lane, data, bytes, destination, tag);
  });
}

int rw_receive(rw_endpoints* endpoints, int lane, void* data, size_t bytes, int source, int tag) {
  return c_call([&] {
    require_argument(endpoints, "endpoints");
    if (bytes != 0) require_argument(data, "data");
    endpoints->set.receive(lane, data, bytes, source, tag);
  });
}
}
