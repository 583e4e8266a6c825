// A key-value store of Python's, as the processes of torchrun share one.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "ropewalk/store_communicator.hpp"

namespace ropewalk::python {

// `store` has the methods set(key, bytes), get(key) and delete_key(key) of torch.distributed.Store.
// To be called with the GIL.
std::shared_ptr<KeyValueStore> key_value_store(nanobind::object store);

}  // namespace ropewalk::python
