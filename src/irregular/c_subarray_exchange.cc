// This file is the C interface of the exchange of parts of arrays.
#include <string>
#include <vector>

#include "c_call.hpp"
#include "ropewalk/collectively.hpp"
#include "ropewalk/ropewalk.h"
#include "ropewalk/subarray_exchange.hpp"

struct rw_subarray_exchange {
  ropewalk::SubarrayExchange exchange;
};

namespace ropewalk {
namespace {

std::vector<std::size_t> numbers(const std::size_t* given, std::size_t count,
                                 const std::string& argument) {
  if (count != 0) require_argument(given, argument.c_str());
  return {given, given + count};
}

ArrayParts parts_of(std::size_t bytes, const rw_subarray* given, int ranks,
                    const std::string& argument) {
  require_argument(given, argument.c_str());
  ArrayParts made{bytes, {}};
  for (int rank = 0; rank < ranks; ++rank) {
    const rw_subarray& one = given[rank];
    const std::string name = argument + "[" + std::to_string(rank) + "].";
    made.parts.push_back({one.offset, numbers(one.extents, one.dimensions, name + "extents"),
                          numbers(one.strides, one.dimensions, name + "strides")});
  }
  return made;
}

template <class Exchange, class Body>
int with_exchange(Exchange* exchange, Body&& body) {
  return c_call([&] {
    require_argument(exchange, "exchange");
    body(exchange->exchange);
  });
}

}  // namespace
}  // namespace ropewalk

using ropewalk::c_call;
using ropewalk::require_argument;
using ropewalk::SubarrayExchange;
using ropewalk::with_exchange;

extern "C" {

int rw_subarray_exchange_create(rw_mpi_comm comm, size_t element_bytes, size_t sent_bytes,
                                const rw_subarray* sent, size_t received_bytes,
                                const rw_subarray* received, rw_subarray_exchange** out) {
  return c_call([&] {
    const ropewalk::Communicator communicator(comm);
    ropewalk::ArrayParts from;
    ropewalk::ArrayParts into;
    ropewalk::collectively(communicator, [&] {
      require_argument(out, "out");
      from = ropewalk::parts_of(sent_bytes, sent, communicator.size(), "sent");
      into = ropewalk::parts_of(received_bytes, received, communicator.size(), "received");
    });
    *out = new rw_subarray_exchange{SubarrayExchange(communicator, element_bytes, from, into)};
  });
}

int rw_subarray_exchange_free(rw_subarray_exchange* exchange) {
  return c_call([&] { delete exchange; });
}

int rw_subarray_exchange_array(const rw_subarray_exchange* exchange, void** data, size_t* bytes) {
  return with_exchange(exchange, [&](const SubarrayExchange& of) {
    if (data != nullptr) *data = of.data();
    if (bytes != nullptr) *bytes = of.bytes();
  });
}

int rw_subarray_exchange_bytes(const rw_subarray_exchange* exchange, size_t* near_bytes,
                               size_t* far_bytes) {
  return with_exchange(exchange, [&](const SubarrayExchange& of) {
    if (near_bytes != nullptr) *near_bytes = of.near_bytes();
    if (far_bytes != nullptr) *far_bytes = of.far_bytes();
  });
}

int rw_subarray_exchange_run(rw_subarray_exchange* exchange, const void* array) {
  return with_exchange(exchange, [&](SubarrayExchange& of) { of.exchange(array); });
}

}  // extern "C"
