// What the blocking and the nonblocking functions of the C interface share.
#pragma once

#include <utility>

#include "c_call.hpp"
#include "collectives/typed.hpp"

struct rw_comm {
  ropewalk::Collectives communicator;
};
struct rw_request {
  ropewalk::CollectiveRequest request;
};

namespace ropewalk::collectives {

// call(communicator, elements) or call(communicator, reduction).
template <class Call>
int move_now(rw_comm* comm, rw_type type, Call call) {
  return c_call([&] {
    require_argument(comm, "comm");
    call(comm->communicator, typed::elements_of(comm->communicator, type));
  });
}

template <class Call>
int reduce_now(rw_comm* comm, rw_type type, rw_op op, Call call) {
  return c_call([&] {
    require_argument(comm, "comm");
    call(comm->communicator, typed::reduction_of(comm->communicator, type, op));
  });
}

}  // namespace ropewalk::collectives
